// The buttons, keys and the slider that move through an episode.
import { byId, setText } from "./dom.js";

/** `move(step)` shows a step; `where()` gives the current one, the last one, and the steps to jump between. */
export function makePlayer(move, where) {
  const play = byId("play");
  const slider = byId("slider");
  const speed = byId("speed");
  let playing = false;
  let last = 0;
  let due = 0; // steps that time has earned, with a fraction

  const next = (steps) => steps.find((step) => step > where().step);
  const previous = (steps) => steps.findLast((step) => step < where().step);
  const jump = (step) => {
    pause();
    if (step !== undefined) move(step);
  };
  const actions = {
    first: () => jump(0),
    back: () => jump(where().step - 1),
    play: toggle,
    forward: () => jump(where().step + 1),
    last: () => jump(where().last),
    "previous-mark": () => jump(previous(where().marked)),
    "next-mark": () => jump(next(where().marked)),
    "previous-kept": () => jump(previous(where().kept)),
    "next-kept": () => jump(next(where().kept)),
  };
  for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", action);
  slider.addEventListener("input", () => jump(Number(slider.value)));

  const letters = {
    " ": "play",
    j: "next-mark",
    k: "previous-mark",
    n: "next-kept",
    p: "previous-kept",
  };
  const keys = { Home: "first", End: "last" };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target.closest?.("button, select, input, summary, a") ?? null;
    if (event.target.classList?.contains("scroll") && event.key.startsWith("Arrow")) return; // it scrolls
    const range = target?.type === "range";
    const letter = letters[event.key.toLowerCase()];
    const arrow = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (letter && byId("letters").checked) {
      // Space presses what has the focus, if it can be pressed.
      if (event.key === " " && target && !range) return;
      if (target?.tagName === "SELECT") return;
      actions[letter]();
    } else if (arrow || keys[event.key]) {
      if (range || target?.tagName === "SELECT" || target?.type === "radio") return; // they have their own use for it
      if (arrow) jump(where().step + arrow * (event.shiftKey ? 10 : 1));
      else actions[keys[event.key]]();
    } else return;
    event.preventDefault();
  });

  function toggle() {
    if (playing) {
      pause();
      return;
    }
    playing = true;
    if (where().step >= where().last) move(0);
    last = performance.now();
    due = 0;
    label();
    requestAnimationFrame(tick);
  }

  function tick(now) {
    if (!playing) return;
    due += (Math.min(now - last, 250) / 1000) * Number(speed.value); // a tab in the background stands still
    last = now;
    const steps = Math.floor(due);
    if (steps > 0) {
      due -= steps;
      move(Math.min(where().step + steps, where().last));
    }
    if (where().step >= where().last) pause();
    else requestAnimationFrame(tick);
  }

  function pause() {
    if (!playing) return;
    playing = false;
    label();
    move(where().step);
  }

  function label() {
    play.setAttribute("aria-label", playing ? "Pause" : "Play");
    play.classList.toggle("playing", playing);
  }

  function load() {
    pause();
    slider.max = String(where().last);
  }

  function show(step) {
    slider.value = String(step);
    slider.setAttribute("aria-valuetext", `step ${step} of ${where().last}`);
    setText(byId("position"), `${step} / ${where().last}`);
  }

  return { load, show, isPlaying: () => playing };
}
