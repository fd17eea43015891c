// Where the return came from, as a table whose bars follow one another.
import { decompose, waterfallParts } from "./credit.js";
import { byId, make, setText } from "./dom.js";
import { decimalsFor, fixed, plural, signed } from "./format.js";

const MOST_PARTS = 6; // decisions, and as many pieces of luck, that have a bar of their own

export function makeWaterfall(seek) {
  const body = byId("waterfall");
  const note = byId("waterfall-note");
  const fromHere = byId("from-here");
  let shown = null;
  let drawn = ""; // which return the rows show
  let current = 0;

  for (const input of [byId("from-start"), fromHere]) input.addEventListener("change", () => show(current));

  body.addEventListener("click", (event) => {
    const step = event.target.closest("tr")?.dataset.step;
    if (step) seek(Number(step));
  });

  function load(next) {
    shown = next;
    drawn = "";
    const rest = "chance in the environment, or an error of the critic";
    setText(
      byId("luck-meaning"),
      shown.hasAdvantages
        ? `The return G is what was expected, V̂, plus Â of each decision, plus what these do not explain: ${rest}.`
        : `The return G is what was expected, V̂, plus surprises: the agent's choices, ${rest}, all in one.`,
    );
  }

  function show(step) {
    current = step;
    const { episode, credit, gamma } = shown;
    const number = credit.segmentOf[Math.min(step, episode.steps - 1)];
    const segment = episode.segments[number];
    const origin = fromHere.checked ? Math.min(step, episode.steps - 1) : segment.start;
    if (drawn !== `${origin}`) {
      drawn = `${origin}`;
      draw(segment, number, decompose(episode, credit, gamma, segment, origin));
    }
    for (const row of body.rows) row.classList.toggle("current", row.dataset.step === String(step));
  }

  function draw(segment, number, decomposition) {
    const parts = waterfallParts(decomposition, shown.hasAdvantages, MOST_PARTS);
    const [low, high] = rangeOf(parts);
    const digits = decimalsFor(Math.max(high, -low));
    const share = (amount) => (high > low ? (100 * amount) / (high - low) : 0);
    body.style.setProperty("--zero", `${share(Math.min(Math.max(0, low), high) - low)}%`);
    const focused = body.contains(document.activeElement);
    body.replaceChildren(...parts.map((part) => row(part, digits, low, high, share)));
    if (focused) body.querySelector("button")?.focus();
    const cropped = low > 0 || high < 0 ? ` Bars are drawn from ${fixed(low > 0 ? low : high, digits)} on, not from 0.` : "";
    setText(note, noteText(segment, number, decomposition, parts, digits) + cropped);
  }

  /** What the bars span: from 0, or only where the sum moves if that is a small part far from 0. */
  function rangeOf(parts) {
    const sums = parts.slice(0, -1).map((part) => part.to);
    const [low, high] = [Math.min(...sums), Math.max(...sums)];
    const margin = 0.15 * (high - low);
    if (high > low && low > 2 * (high - low)) return [low - margin, high + margin];
    if (high > low && -high > 2 * (high - low)) return [low - margin, high + margin];
    return [Math.min(0, low), Math.max(0, high)];
  }

  function row(part, digits, low, high, share) {
    const single = part.kind === "choice" || part.kind === "luck";
    const kind = part.kind.replace("other ", "");
    const sign = kind === "choice" ? (part.amount < 0 ? "loss" : "gain") : kind;
    const bar = make("i", { class: sign });
    const [begin, end] = [part.from, part.to].map((amount) => Math.min(Math.max(amount, low), high)).sort((a, b) => a - b);
    bar.style.left = `${share(begin - low)}%`;
    bar.style.width = `${share(end - begin)}%`;
    const name = partText(part);
    const label = part.step === null ? name : make("button", { type: "button", class: "jump" }, name);
    const total = part.kind === "value" || part.kind === "return";
    const element = make(
      ...["tr", { class: `${total ? "total" : ""} ${single ? "" : "sum"}` }],
      make("th", { scope: "row" }, label),
      make("td", { class: "bars" }, make("div", { class: "bar", "aria-hidden": "true" }, bar)),
      make("td", { class: "number" }, total ? fixed(part.amount, digits) : signed(part.amount, digits)),
      make("td", { class: "number running" }, fixed(part.to, digits)),
    );
    if (part.step !== null) element.dataset.step = String(part.step);
    element.dataset.kind = part.kind;
    return element;
  }

  function partText({ kind, step, count }) {
    const { names, episode, hasAdvantages } = shown;
    const rest = hasAdvantages ? "unexplained" : "surprise";
    const texts = {
      value: () => `V̂ at step ${step}: expected`,
      choice: () => `step ${step}: ${names[episode.actions[step]]}`,
      luck: () => `step ${step}: ${rest}`,
      "other choice": () => `${plural(count, "other decision")}`,
      "other luck": () => (hasAdvantages ? `unexplained in ${plural(count, "other step")}` : plural(count, "other surprise")),
      return: () => "G: the return",
    };
    return texts[kind]();
  }

  function noteText(segment, number, { origin, total, rest }, parts, digits) {
    const sum = parts.at(-2).to;
    const many = shown.episode.segments.length > 1;
    const where = `Steps ${origin} to ${segment.end - 1}${many ? `, segment ${number + 1}` : ""}: `;
    const adds = `the parts add up to ${fixed(sum, digits)}; the rewards give G = ${fixed(total, digits)}.`;
    const cut = ` The segment was cut, so G includes ${fixed(rest, digits)}, γⁿ V̂ of what would have followed.`;
    return where + adds + (segment.terminated ? "" : cut);
  }

  return { load, show };
}
