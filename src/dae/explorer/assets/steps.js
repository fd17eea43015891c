// Every step's contribution as a table, a page at a time.
import { byId, make, setText } from "./dom.js";
import { fixed, short, signed, whole } from "./format.js";

const PAGE = 50;

export function makeSteps(seek) {
  const details = byId("steps");
  const body = byId("steps-body");
  let shown = null;
  let page = 0;
  let drawn = -1;
  let current = 0;

  details.addEventListener("toggle", () => show(current));
  byId("steps-previous").addEventListener("click", () => turn(page - 1));
  byId("steps-next").addEventListener("click", () => turn(page + 1));
  body.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) seek(Number(button.dataset.step));
  });

  const pages = () => Math.ceil(shown.episode.steps / PAGE);

  function load(next) {
    shown = next;
    drawn = -1;
    const amounts = shown.hasAdvantages ? ["Â taken", "γᵗ Â", "unexplained", "γᵗ of it", "best Â − Â", "stakes"] : ["surprise", "γᵗ surprise"];
    const heads = ["step", "action", "π", "V̂", "reward", "score", ...amounts];
    byId("steps-head").replaceChildren(...heads.map((text) => make("th", { scope: "col" }, text)));
  }

  function turn(next) {
    page = Math.max(0, Math.min(pages() - 1, next));
    draw();
  }

  function show(step) {
    current = step;
    if (!details.open) return;
    const wanted = Math.floor(Math.min(step, shown.episode.steps - 1) / PAGE);
    if (drawn < 0 || wanted !== page) turn(wanted);
    mark();
  }

  function mark() {
    for (const row of body.rows) row.classList.toggle("current", row.dataset.step === String(current));
  }

  function draw() {
    if (drawn !== page) {
      drawn = page;
      const last = Math.min(shown.episode.steps, (page + 1) * PAGE);
      const rows = [];
      for (let t = page * PAGE; t < last; t += 1) rows.push(row(t));
      body.replaceChildren(...rows);
      setText(byId("steps-page"), `steps ${whole(page * PAGE)} to ${whole(last - 1)} of ${whole(shown.episode.steps)}`);
    }
    byId("steps-previous").disabled = page === 0;
    byId("steps-next").disabled = page === pages() - 1;
    mark();
  }

  function row(t) {
    const { episode, credit, names, gamma, digits, valueDigits } = shown;
    const discount = gamma ** (t - episode.segments[credit.segmentOf[t]].start);
    const button = make("button", { type: "button", class: "jump" }, String(t));
    button.dataset.step = String(t);
    const amounts = credit.choice
      ? [credit.choice[t], discount * credit.choice[t], credit.luck[t], discount * credit.luck[t]]
      : [credit.luck[t], discount * credit.luck[t]];
    const sizes = credit.choice ? [credit.costs[t], credit.stakes[t]] : [];
    const cells = [
      fixed(episode.probabilities[t * episode.width + episode.actions[t]], 3),
      fixed(episode.values[t], valueDigits),
      ...[short(episode.rewards[t]), short(episode.scores[t])],
      ...amounts.map((amount) => signed(amount, digits)),
      ...sizes.map((size) => fixed(size, digits)),
    ];
    const element = make(
      ...["tr", {}, make("th", { scope: "row" }, button), make("td", { class: "text" }, names[episode.actions[t]])],
      ...cells.map((text) => make("td", {}, text)),
    );
    element.dataset.step = String(t);
    return element;
  }

  return { load, show };
}
