// The page: one episode and one step at a time, and the panels that show them.
import { makeActions } from "./actions.js";
import { filterStakes, openEpisode } from "./data.js";
import { makeDecisions } from "./decisions.js";
import { byId, make, setCurrent, setText, textButton } from "./dom.js";
import { episodeCsv, episodeJson, fileName, save } from "./exporting.js";
import { plural, short, whole } from "./format.js";
import { makePicture } from "./picture.js";
import { makePlayer } from "./player.js";
import { makeSteps } from "./steps.js";
import { makeTimeline } from "./timeline.js";
import { makeWaterfall } from "./waterfall.js";
import { makeWhatIf } from "./whatif.js";

const exploration = JSON.parse(byId("data").textContent);
const ranked = exploration.episodes.map((_, number) => number);
ranked.sort((a, b) => exploration.episodes[b].score - exploration.episodes[a].score);

let shown = null;
let step = 0;
let asked = false; // a frame was asked for
let keptSteps = [];

const lastStep = () => {
  const { episode } = shown;
  const pictures = episode.picture?.frames ?? episode.picture?.index?.length ?? 0;
  return pictures > episode.steps ? episode.steps : episode.steps - 1;
};

const picture = makePicture(byId("picture"));
const actions = makeActions();
const timeline = makeTimeline(jump);
const decisions = makeDecisions(jump, filterBy);
const waterfall = makeWaterfall(jump);
const whatIf = makeWhatIf(jump);
const steps = makeSteps(jump);
const player = makePlayer(move, () => ({ step, last: lastStep(), marked: shown.marked, kept: keptSteps }));
const panels = [picture, actions, timeline, decisions, waterfall, whatIf, steps, player];

/** Show a step with the next frame; of several moves between two frames the last counts. */
function move(next) {
  step = Math.max(0, Math.min(lastStep(), next));
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    render();
  });
}

/** Go where a list or the timeline points; on a phone, to where it can be seen. */
function jump(next) {
  if (player.isPlaying()) byId("play").click();
  move(next);
  if (matchMedia("(max-width: 700px)").matches) byId("picture").scrollIntoView({ block: "nearest" });
}

function render() {
  for (const panel of panels) panel.show(step);
  whenQuiet();
}

/** Speak, and put the step into the page's address, when it has stayed for a moment; never while it plays. */
let quiet = 0;
function whenQuiet() {
  clearTimeout(quiet);
  if (player.isPlaying()) return;
  quiet = setTimeout(() => {
    setText(byId("spoken"), actions.spoken(step));
    history.replaceState(null, "", `#episode=${ranked.indexOf(shown.number) + 1}&step=${step}`);
  }, 400);
}

function open(number, first = 0) {
  shown = openEpisode(exploration.episodes[number], exploration, number);
  keptSteps = stepsKept();
  step = Math.max(0, Math.min(lastStep(), first));
  for (const panel of panels) panel.load?.(shown);
  for (const button of byId("episodes").querySelectorAll("button")) {
    setCurrent(button, Number(button.dataset.number) === number);
  }
  const { episode } = shown;
  const cut = episode.ended ? "" : " Only its beginning is shown.";
  setText(byId("episode-text"), `Seed ${episode.seed}, ${plural(episode.steps, "step")}, score ${short(episode.score)}.${cut}`);
  render();
}

const stepsKept = () => [...shown.kept.keys()].filter((t) => shown.kept[t]);

function filterBy(share) {
  filterStakes(shown, share);
  keptSteps = stepsKept();
  for (const panel of [timeline, decisions, whatIf]) panel.filter();
  render();
}

function listEpisodes() {
  const items = ranked.map((number, place) => {
    const { score, actions: { shape }, ended, truths } = exploration.episodes[number];
    const text = `${plural(shape[0], "step")}${ended ? "" : ", cut"}${truths.length ? ", checked" : ""}`;
    const button = textButton("", () => open(number), { "aria-label": `Episode ${place + 1}: score ${short(score)}, ${text}` });
    button.dataset.number = String(number);
    button.append(make("strong", {}, `score ${short(score)}`), make("span", {}, text));
    return make("li", {}, button);
  });
  byId("episodes").replaceChildren(...items);
}

function describe() {
  const { env, label, run, frames, greedy, gamma, source } = exploration;
  setText(byId("env"), env);
  setText(byId("run"), run);
  const greedily = "takes the most probable action, while V̂, Â and simulations are those of the policy that draws";
  const acting = greedy ? greedily : "draws its actions from the policy";
  setText(byId("agent"), `${label}, trained for ${whole(frames)} frames; it ${acting}; γ = ${gamma}`);
  const sources = {
    network: `Â(s,a) is the agent's own estimate of what each action changes (${label}).`,
    "look-ahead": `Â(s,a) is a one-step look-ahead with the agent's value function: each action was tried a few times in the restored environment.`,
  };
  const none = "Advantages of single actions are not available for this run; all that does not need them is shown.";
  setText(byId("source"), sources[source] ?? none);
  byId("source").classList.toggle("banner", source === null);
  setText(byId("bars-title"), source === null ? "Surprise: r + γV̂(s′) − V̂(s)" : "Â of the actions taken");
  setText(byId("gains-key"), source === null ? "most more than expected" : "biggest gains");
  setText(byId("mistakes-key"), source === null ? "most less than expected" : "biggest mistakes");
  document.body.classList.toggle("no-advantages", source === null);
}

/** The place that the page's address names, if it does. */
function fromAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  const number = ranked[Number(words.get("episode") ?? 1) - 1] ?? ranked[0];
  return [number, Math.floor(Number(words.get("step"))) || 0];
}

byId("save-json").addEventListener("click", () => {
  save(`${JSON.stringify(episodeJson(shown))}\n`, "application/json", fileName(shown, "json"));
});
byId("save-csv").addEventListener("click", () => save(episodeCsv(shown), "text/csv", fileName(shown, "csv")));

describe();
listEpisodes();
open(...fromAddress());
window.addEventListener("hashchange", () => open(...fromAddress()));
const redraw = () => {
  picture.fit();
  timeline.resize();
};
new ResizeObserver(redraw).observe(byId("overview"));
for (const query of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"]) {
  matchMedia(query).addEventListener("change", redraw);
}
