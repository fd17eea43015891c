// How numbers and decisions are written.

const MINUS = "\u2212";

/** Decimals that show three digits of the largest number, at least two decimals unless it is very large. */
export function decimalsFor(largest) {
  if (!(largest > 0)) return 2;
  if (largest >= 100) return largest >= 1000 ? 0 : 1;
  return Math.min(6, Math.max(2, 2 - Math.floor(Math.log10(largest))));
}

/** 0.80, −0.80; what is not known is a dash, and nothing is −0. */
export function fixed(number, decimals) {
  if (number === null || !Number.isFinite(number)) return "–";
  const text = Math.abs(number).toFixed(decimals);
  return number < 0 && Number(text) !== 0 ? MINUS + text : text;
}

/** +0.80, −0.80 and 0.00. */
export function signed(number, decimals) {
  const text = fixed(number, decimals);
  return number > 0 && Number(text) !== 0 ? `+${text}` : text;
}

/** A reward or a score: 1, 0.5, −2.25, 12,000. */
export function short(number) {
  return number.toLocaleString("en-US", { maximumFractionDigits: 3 }).replace("-", MINUS);
}

export const whole = (number) => number.toLocaleString("en-US");

export const percent = (share) => `${(100 * share).toFixed(1)}%`;

export const plural = (number, one, many = `${one}s`) => `${whole(number)} ${number === 1 ? one : many}`;

/** The shortest decimal that stands for a number of the network: 0.1, not 0.10000000149011612. */
export function shortest(number) {
  for (let digits = 6; digits < 9; digits += 1) {
    const text = number.toPrecision(digits);
    if (Math.fround(Number(text)) === number) return Number(text);
  }
  return Number(number.toPrecision(9));
}

/** "step 112: left instead of right cost 0.80": less than the policy's average, as a gain is more. */
export function mistakeText({ episode, credit, names, digits, hasAdvantages }, step) {
  if (!hasAdvantages) return `step ${step}: ${fixed(-credit.luck[step], digits)} less than expected`;
  const taken = names[episode.actions[step]];
  return `step ${step}: ${taken} instead of ${names[credit.best[step]]} cost ${fixed(-credit.choice[step], digits)}`;
}

/** "step 112: right is valued 1.10 above left" */
export function doubtText({ episode, credit, names, digits }, step) {
  const [best, taken] = [names[credit.best[step]], names[episode.actions[step]]];
  return `step ${step}: ${best} is valued ${fixed(credit.costs[step], digits)} above ${taken}`;
}

/** "step 98: fire gained 0.60" */
export function gainText({ episode, credit, names, digits, hasAdvantages }, step) {
  if (!hasAdvantages) return `step ${step}: ${fixed(credit.luck[step], digits)} more than expected`;
  return `step ${step}: ${names[episode.actions[step]]} gained ${fixed(credit.choice[step], digits)}`;
}
