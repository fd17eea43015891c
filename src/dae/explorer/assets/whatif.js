// Â beside what happened when each action was tried in the restored state, many times.
import { byId, make, setCurrent, setText, textButton } from "./dom.js";
import { fixed, percent, plural, signed } from "./format.js";

const AGREES = 2; // standard errors

export function makeWhatIf(seek) {
  const section = byId("what-if");
  const body = byId("truth");
  let shown = null;

  function load(next) {
    shown = next;
    section.hidden = !shown.truths.size;
    byId("checked-key").hidden = !shown.truths.size;
    const [low, high] = shown.range;
    body.style.setProperty("--zero", `${(100 * -low) / (high - low)}%`);
    byId("truth-table").classList.toggle("without-advantages", !shown.hasAdvantages);
    filter();
  }

  /** Whether Â is within two standard errors, or as good as equal; null where the error or Â is not known. */
  function agrees(truth, action) {
    const { episode, hasAdvantages, digits } = shown;
    const [simulated, error] = [truth.advantages[action], truth.errors[action]];
    if (!hasAdvantages || simulated === null || error === null) return null;
    const rounding = 0.5 * 10 ** -digits; // an error of 0 does not mean that a network must be exact
    return Math.abs(episode.advantages[truth.step * episode.width + action] - simulated) <= AGREES * error + rounding;
  }

  function filter() {
    const steps = [...shown.truths.keys()].filter((step) => shown.kept[step]).sort((a, b) => a - b);
    byId("truths").replaceChildren(...steps.map(jumpTo));
    const verdicts = steps.flatMap((step) => shown.names.map((_, action) => agrees(shown.truths.get(step), action)));
    const known = verdicts.filter((verdict) => verdict !== null);
    const agreeing = known.filter(Boolean).length;
    const share = `Â is within ${AGREES} standard errors for ${agreeing} of ${plural(known.length, "action")} there.`;
    const all = shown.truths.size;
    const checked = steps.length < all ? `${steps.length} of ${plural(all, "step")} checked by simulation are` : "";
    const what = checked ? `${checked} within the filter.` : `${plural(all, "step")} checked by simulation.`;
    setText(byId("truths-text"), `${what} ${known.length ? share : ""}`);
  }

  function jumpTo(step) {
    const action = shown.names[shown.episode.actions[step]];
    const button = textButton(`step ${step}: ${action}`, () => seek(step), { class: "jump" });
    button.dataset.step = String(step);
    return make("li", {}, button);
  }

  function show(step) {
    if (!shown.truths.size) return;
    const truth = shown.truths.get(step);
    byId("truth-table").hidden = !truth;
    byId("truth-key").hidden = !truth;
    for (const button of byId("truths").querySelectorAll("button")) {
      setCurrent(button, Number(button.dataset.step) === step);
    }
    setText(byId("truth-text"), truth ? verdictText(truth) : "This step was not checked; choose one that was.");
    if (truth) body.replaceChildren(...shown.names.map((name, action) => row(truth, name, action)));
  }

  function row(truth, name, action) {
    const { episode, digits, hasAdvantages, range } = shown;
    const [low, high] = range;
    const at = (amount) => `${(100 * (amount - low)) / (high - low)}%`;
    const [simulated, error] = [truth.advantages[action], truth.errors[action]];
    const track = make("div", { class: "bar", "aria-hidden": "true" });
    const estimate = hasAdvantages ? episode.advantages[truth.step * episode.width + action] : null;
    if (simulated !== null) {
      for (const [kind, errors] of [["thin", 2], ["thick", 1]]) {
        const whisker = make("b", { class: kind });
        whisker.style.left = at(simulated - errors * (error ?? 0));
        whisker.style.width = `${(200 * errors * (error ?? 0)) / (high - low)}%`;
        track.append(whisker);
      }
      track.append(point("dot", at(simulated)));
    }
    if (estimate !== null) track.append(point("diamond", at(estimate)));
    const verdict = agrees(truth, action);
    const taken = episode.actions[truth.step] === action;
    const cell = (text, kind = "") => make("td", { class: `number ${kind}` }, text);
    return make(
      ...["tr", { class: taken ? "taken" : "" }],
      make("th", { scope: "row", class: "name", title: name }, taken ? `${name} (taken)` : name),
      make("td", { class: "bars" }, track),
      cell(estimate === null ? "–" : signed(estimate, digits), "advantage"),
      cell(withError(simulated, error, true)),
      cell(withError(truth.q[action], truth.q_error[action], false)),
      cell(verdict === null ? "–" : verdict ? "yes" : "no", "advantage"),
    );
  }

  function point(kind, left) {
    const element = make("i", { class: kind });
    element.style.left = left;
    return element;
  }

  function withError(mean, error, sign) {
    const text = sign ? signed(mean, shown.digits) : fixed(mean, shown.digits);
    return error === null || mean === null ? text : `${text} ± ${fixed(error, shown.digits)}`;
  }

  function verdictText(truth) {
    const { names, episode, digits } = shown;
    const rollouts = `Step ${truth.step}: ${plural(truth.rollouts, "rollout")} of each action`;
    const cut = truth.cut > 0 ? ` (${percent(truth.cut)} of them cut there)` : "";
    const how = `${rollouts}, of ${plural(truth.horizon, "step")} at most${cut}. `;
    const value = `V̂ is ${fixed(episode.values[truth.step], digits)}, simulated ${withError(truth.value, truth.value_error, false)}. `;
    const verdicts = names.map((_, action) => agrees(truth, action));
    if (verdicts.every((verdict) => verdict === null)) return how + value;
    const wrong = names.filter((_, action) => verdicts[action] === false);
    if (!wrong.length) return `${how}${value}Â agrees with the simulation within ${AGREES} standard errors for all actions.`;
    return `${how}${value}Â differs from the simulation by more than ${AGREES} standard errors for ${wrong.join(", ")}.`;
  }

  return { load, filter, show };
}
