// π(·|s) and Â(s,·) of all actions at the current step, and the choice in words.
import { byId, make, setText } from "./dom.js";
import { fixed, percent, short, signed } from "./format.js";

export function makeActions() {
  const body = byId("actions");
  const facts = Object.fromEntries(
    ["segment", "value", "reward", "score", "advantage", "luck"].map((name) => [name, byId(`fact-${name}`)]),
  );
  const verdict = byId("verdict");
  let shown = null;
  let rows = [];

  function load(next) {
    shown = next;
    rows = shown.names.map(makeRow);
    body.replaceChildren(...rows.map((row) => row.element));
    const { classList } = byId("actions-table");
    classList.toggle("without-advantages", !shown.hasAdvantages);
    classList.toggle("long-names", shown.names.some((name) => name.length > 7));
    byId("fact-advantage").parentElement.hidden = !shown.hasAdvantages;
    setText(byId("fact-luck-name"), shown.hasAdvantages ? "Unexplained" : "Surprise");
    byId("fact-segment").parentElement.hidden = shown.episode.segments.length === 1;
  }

  function makeRow(name) {
    const probability = makeBar();
    const advantage = makeBar();
    const [low, high] = shown.range;
    advantage.track.style.setProperty("--zero", `${(100 * -low) / (high - low)}%`);
    const mark = make("td", { class: "mark" });
    const element = make("tr", {}, mark, make("th", { scope: "row", class: "name", title: name }, name));
    element.append(probability.cell, probability.number, advantage.cell, advantage.number);
    for (const part of [advantage.cell, advantage.number]) part.classList.add("advantage");
    return { element, mark, probability, advantage };
  }

  function makeBar() {
    const bar = make("i");
    const track = make("div", { class: "bar", "aria-hidden": "true" }, bar);
    return { bar, track, cell: make("td", { class: "bars" }, track), number: make("td", { class: "number" }) };
  }

  function show(step) {
    const { episode, credit, digits, valueDigits, range } = shown;
    const [low, high] = range;
    const past = step >= episode.steps;
    rows.forEach(({ element, mark, probability, advantage }, action) => {
      const taken = !past && episode.actions[step] === action;
      const best = !past && shown.hasAdvantages && credit.best[step] === action;
      element.className = `${taken ? "taken" : ""} ${best ? "best" : ""}`;
      setText(mark, [taken ? "taken" : "", best ? "best" : ""].filter(Boolean).join(" "));
      const share = past ? 0 : episode.probabilities[step * episode.width + action];
      probability.bar.style.width = `${100 * share}%`;
      setText(probability.number, past ? "" : percent(share));
      if (!shown.hasAdvantages) return;
      const amount = past ? 0 : episode.advantages[step * episode.width + action];
      const [from, to] = [Math.min(0, amount), Math.max(0, amount)];
      advantage.bar.style.left = `${(100 * (from - low)) / (high - low)}%`;
      advantage.bar.style.width = `${(100 * (to - from)) / (high - low)}%`;
      advantage.bar.className = amount < 0 ? "loss" : "gain";
      setText(advantage.number, past ? "" : signed(amount, digits));
    });
    const segment = credit.segmentOf[Math.min(step, episode.steps - 1)];
    setText(facts.segment, `${segment + 1} of ${episode.segments.length}`);
    setText(facts.value, past ? "–" : fixed(episode.values[step], valueDigits));
    setText(facts.reward, past ? "–" : short(episode.rewards[step]));
    setText(facts.score, short(episode.scores[Math.min(step, episode.steps - 1)]));
    setText(facts.advantage, past || !credit.choice ? "–" : signed(credit.choice[step], digits));
    setText(facts.luck, past ? "–" : signed(credit.luck[step], digits));
    setText(verdict, choiceText(step));
  }

  /** The choice beside the best-valued action. */
  function choiceText(step) {
    const { episode, credit, names, digits } = shown;
    if (step >= episode.steps) return "After the last step.";
    const action = episode.actions[step];
    const taken = `${names[action]} was taken`;
    if (!shown.hasAdvantages) return `${taken}; there are no advantages to compare it with.`;
    const best = credit.best[step];
    if (best === action) return `${taken}, the best-valued action; stakes ${fixed(credit.stakes[step], digits)}.`;
    const cost = fixed(credit.costs[step], digits);
    return `${taken}; ${names[best]} is valued ${cost} higher; stakes ${fixed(credit.stakes[step], digits)}.`;
  }

  /** One sentence with all of it, for a screen reader. */
  function spoken(step) {
    const { episode, digits, valueDigits, credit } = shown;
    if (step >= episode.steps) return "After the last step.";
    const advantage = shown.hasAdvantages ? `advantage ${signed(credit.choice[step], digits)}, ` : "";
    const value = `value ${fixed(episode.values[step], valueDigits)}`;
    const rest = `reward ${short(episode.rewards[step])}, score ${short(episode.scores[step])}`;
    return `Step ${step}: ${choiceText(step)} ${advantage}${value}, ${rest}.`;
  }

  return { load, show, spoken };
}
