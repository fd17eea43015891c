// The biggest mistakes and gains in words, and the filter by stakes.
import { byId, make, setCurrent, setText, textButton } from "./dom.js";
import { doubtText, fixed, gainText, mistakeText, percent, whole } from "./format.js";

export function makeDecisions(seek, filterChanged) {
  const slider = byId("stakes");
  let shown = null;

  slider.addEventListener("input", () => filterChanged(Number(slider.value) / 1000));

  function load(next) {
    shown = next;
    slider.value = "0";
    byId("filter").hidden = !shown.hasAdvantages;
    byId("otherwise").hidden = !shown.hasAdvantages;
    byId("checks-some").hidden = !shown.exploration.episodes.some(({ truths }) => truths.length);
    setText(byId("mistakes-title"), shown.hasAdvantages ? "Biggest mistakes" : "Less than expected");
    setText(byId("gains-title"), shown.hasAdvantages ? "Biggest gains" : "More than expected");
    filter();
  }

  function filter() {
    list("mistakes", shown.marks.mistakes, mistakeText);
    list("gains", shown.marks.gains, gainText);
    list("doubts", shown.marks.doubts, doubtText);
    const count = shown.kept.reduce((sum, one) => sum + one, 0);
    const of = `${whole(count)} of ${whole(shown.episode.steps)} steps`;
    const text = `at least ${fixed(shown.least, shown.digits)}: ${of}`;
    setText(byId("stakes-text"), text);
    slider.setAttribute("aria-valuetext", `stakes ${text}`);
  }

  function list(id, steps, wording) {
    const items = steps.map((step) => {
      const button = textButton(wording(shown, step), () => seek(step), { class: "jump" });
      button.dataset.step = String(step);
      const probability = shown.episode.probabilities[step * shown.episode.width + shown.episode.actions[step]];
      return make("li", {}, button, make("span", { class: "aside" }, ` π ${percent(probability)}`));
    });
    byId(id).replaceChildren(...(items.length ? items : [make("li", { class: "aside" }, "none among these steps")]));
  }

  function show(step) {
    for (const button of document.querySelectorAll("#mistakes button, #gains button, #doubts button")) {
      setCurrent(button, Number(button.dataset.step) === step);
    }
  }

  return { load, filter, show };
}
