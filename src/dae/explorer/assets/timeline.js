// The credit of the whole episode at a glance, and a close-up around the current step.
import { extent } from "./data.js";
import { byId, fitCanvas, make, textButton, themeColours } from "./dom.js";
import { gainText, mistakeText, signed, whole } from "./format.js";

const GUTTER = 46; // for the scale at the left
const EDGE = 8; // at the right
// Heights of the lanes of the overview, from the top: marks of gains, bars, marks of mistakes, checked steps, rewards, sum.
const LANES = { gains: 16, bars: 92, mistakes: 16, checks: 16, rewards: 16, sum: 46, axis: 18 };
const CLOSE_HEIGHT = 108;
const CLOSE_STEP = 10; // pixels of a step in the close-up

export function makeTimeline(seek) {
  const overview = byId("overview");
  const still = byId("overview-canvas");
  const cursor = byId("cursor");
  const marks = byId("marks");
  const close = byId("close-up");
  const closeCanvas = byId("close-up-canvas");
  let shown = null;
  let colours = {};
  let width = 0;
  let closeDrawing = null;
  let view = { first: 0, count: 1, left: GUTTER }; // what the close-up shows
  let current = 0;

  const tops = {};
  let height = 0;
  for (const [lane, size] of Object.entries(LANES)) {
    tops[lane] = height;
    height += size;
  }

  const place = (step) => GUTTER + ((step + 0.5) / shown.episode.steps) * (width - GUTTER - EDGE);

  drag(overview, (x) => Math.floor(((x - GUTTER) / (width - GUTTER - EDGE)) * shown.episode.steps));
  drag(close, (x) => view.first + Math.floor((x - view.left) / CLOSE_STEP), false);

  /** Follow the pointer; a finger that moves up or down scrolls the page. */
  function drag(area, stepAt, follow = true) {
    const go = (event) => {
      const step = stepAt(event.clientX - area.getBoundingClientRect().left);
      seek(Math.max(0, Math.min(shown.episode.steps - 1, step)));
    };
    let touched = null; // where a finger came down, as long as it may still scroll the page
    area.addEventListener("pointerdown", (event) => {
      if (event.button || event.target.closest("button")) return;
      if (follow) area.setPointerCapture(event.pointerId);
      if (event.pointerType === "touch") touched = event.clientX;
      else go(event);
    });
    area.addEventListener("pointermove", (event) => {
      if (touched !== null && Math.abs(event.clientX - touched) < 8) return;
      touched = null;
      if (follow && area.hasPointerCapture(event.pointerId)) go(event);
    });
    area.addEventListener("pointerup", (event) => {
      if (touched !== null) go(event);
      touched = null;
    });
    area.addEventListener("pointercancel", () => {
      touched = null;
    });
  }

  function load(next) {
    shown = next;
    resize();
  }

  function resize() {
    width = overview.clientWidth;
    if (!shown || width <= GUTTER + EDGE) return;
    closeDrawing = fitCanvas(closeCanvas, width, CLOSE_HEIGHT);
    filter();
    show(current);
  }

  /** Draw what does not change from step to step. */
  function filter() {
    colours = themeColours();
    overview.style.height = `${height}px`;
    const drawing = fitCanvas(still, width, height);
    drawing.font = getComputedStyle(overview).font;
    const { episode, signal, kept, credit } = shown;
    const bars = scaleOf(signal, tops.bars, LANES.bars);
    drawSegments(drawing);
    drawScale(drawing, bars, tops.bars, LANES.bars);
    const wide = Math.max(1, ((width - GUTTER - EDGE) / episode.steps) * 0.8);
    for (const strong of [0, 1]) {
      drawing.globalAlpha = strong ? 1 : 0.22;
      for (let t = 0; t < episode.steps; t += 1) {
        if (kept[t] === strong) drawBar(drawing, place(t), wide, bars, signal[t]);
      }
    }
    drawRewards(drawing);
    const sums = scaleOf(credit.cumulative, tops.sum + 3, LANES.sum - 6);
    drawScale(drawing, sums, tops.sum + 3, LANES.sum - 6);
    drawSums(drawing, sums);
    drawAxis(drawing, 0, episode.steps, place, height - 5);
    placeMarks();
  }

  function scaleOf(numbers, top, size) {
    const [low, high] = extent(numbers);
    return { low, high, at: (number) => top + (size * (high - number)) / (high - low) };
  }

  function drawSegments(drawing) {
    shown.episode.segments.forEach((segment, number) => {
      if (number % 2 === 0) return;
      const from = place(segment.start - 0.5);
      drawing.fillStyle = colours.line;
      drawing.globalAlpha = 0.45;
      drawing.fillRect(from, 0, place(segment.end - 0.5) - from, height - LANES.axis);
      drawing.globalAlpha = 1;
    });
  }

  /** The zero line and the largest and smallest number at the left. */
  function drawScale(drawing, scale, top, size) {
    const digits = Math.max(scale.high, -scale.low) < 0.1 ? shown.digits : 2;
    drawing.fillStyle = colours.soft;
    drawing.fillRect(GUTTER, Math.round(scale.at(0)), width - GUTTER - EDGE, 1);
    drawing.textAlign = "right";
    const zero = scale.at(0);
    if (zero - top > 9) drawing.fillText(signed(scale.high, digits), GUTTER - 6, top + 9);
    if (top + size - zero > 9) drawing.fillText(signed(scale.low, digits), GUTTER - 6, top + size);
    if (zero - top > 22 && top + size - zero > 16) drawing.fillText("0", GUTTER - 6, zero + 4);
  }

  function drawBar(drawing, x, wide, scale, amount) {
    drawing.fillStyle = amount < 0 ? colours.loss : colours.gain;
    const zero = scale.at(0);
    const end = scale.at(amount);
    drawing.fillRect(x - wide / 2, Math.min(zero, end), wide, Math.abs(end - zero));
  }

  /** A reward is a line that rises from the middle of its lane; a penalty hangs from it. */
  function drawRewards(drawing) {
    const { rewards, steps } = shown.episode;
    const middle = tops.rewards + LANES.rewards / 2;
    drawing.fillStyle = colours.line;
    drawing.fillRect(GUTTER, middle, width - GUTTER - EDGE, 1);
    drawing.fillStyle = colours.soft;
    drawing.textAlign = "right";
    drawing.fillText("reward", GUTTER - 4, middle + 4);
    drawing.fillStyle = colours.ink;
    for (let t = 0; t < steps; t += 1) {
      if (rewards[t] > 0) drawing.fillRect(place(t) - 0.75, middle - 6, 1.5, 6);
      if (rewards[t] < 0) drawing.fillRect(place(t) - 0.75, middle + 1, 1.5, 6);
    }
  }

  function drawSums(drawing, scale) {
    const { episode, credit } = shown;
    drawing.strokeStyle = colours.ink;
    drawing.lineWidth = 1.5;
    drawing.lineJoin = "round";
    for (const segment of episode.segments) {
      drawing.beginPath();
      drawing.moveTo(place(segment.start - 0.5), scale.at(0));
      for (let t = segment.start; t < segment.end; t += 1) drawing.lineTo(place(t), scale.at(credit.cumulative[t]));
      drawing.stroke();
    }
  }

  function drawAxis(drawing, first, end, at, bottom) {
    const room = Math.max(1, Math.floor((width - GUTTER) / 70));
    const rough = (end - first) / room;
    const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
    const gap = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? power;
    drawing.fillStyle = colours.soft;
    drawing.textAlign = "center";
    for (let t = Math.ceil(first / gap) * gap; t < end; t += gap) {
      const x = at(t);
      if (x > width - 16) continue;
      drawing.fillRect(x - 0.5, bottom - 13, 1, 3);
      drawing.fillText(whole(t), x, bottom);
    }
  }

  /** The marks can be clicked; the lists beside the timeline have them for the keyboard. */
  function placeMarks() {
    const mark = (kind, step, text, top) => {
      const button = textButton("", () => seek(step), { class: `mark ${kind}`, title: text, tabindex: "-1" });
      button.setAttribute("aria-label", text);
      button.dataset.step = String(step);
      button.style.left = `${place(step)}px`;
      button.style.top = `${top}px`;
      return button;
    };
    const checked = [...shown.truths.keys()].filter((step) => shown.kept[step]);
    marks.replaceChildren(
      ...shown.marks.gains.map((t) => mark("gain", t, gainText(shown, t), tops.gains)),
      ...shown.marks.mistakes.map((t) => mark("mistake", t, mistakeText(shown, t), tops.mistakes)),
      ...checked.map((t) => mark("checked", t, `step ${t}: checked by simulation`, tops.checks)),
    );
  }

  function show(step) {
    current = step;
    if (!closeDrawing) return;
    cursor.style.transform = `translateX(${place(Math.min(step, shown.episode.steps - 1))}px)`;
    drawCloseUp(Math.min(step, shown.episode.steps - 1));
  }

  /** Each step of some seconds: the credit of the action taken, and a line at what the best action was valued. */
  function drawCloseUp(step) {
    const { episode, credit, signal, kept, spread } = shown;
    const drawing = closeDrawing;
    const fits = Math.floor((width - GUTTER - EDGE) / CLOSE_STEP);
    const count = Math.min(fits, episode.steps);
    const first = Math.max(0, Math.min(step - Math.floor(count / 2), episode.steps - count));
    view = { first, count, left: GUTTER };
    const at = (t) => GUTTER + (t - first + 0.5) * CLOSE_STEP;
    const [low, high] = spread;
    const [top, size] = [8, CLOSE_HEIGHT - 8 - 30];
    const scale = { low, high, at: (number) => top + (size * (high - number)) / (high - low) };
    drawing.clearRect(0, 0, width, CLOSE_HEIGHT);
    drawing.font = getFont();
    drawing.fillStyle = colours.line;
    drawing.fillRect(at(step) - CLOSE_STEP / 2, 0, CLOSE_STEP, CLOSE_HEIGHT - 15);
    drawScale(drawing, scale, top, size);
    for (let t = first; t < first + count; t += 1) {
      drawing.globalAlpha = kept[t] ? 1 : 0.3;
      drawBar(drawing, at(t), CLOSE_STEP - 3, scale, signal[t]);
      if (credit.choice && credit.costs[t] > 0) {
        drawing.fillStyle = colours.ink;
        drawing.fillRect(at(t) - 3.5, scale.at(credit.choice[t] + credit.costs[t]) - 0.75, CLOSE_STEP - 3, 1.5);
      }
      drawing.globalAlpha = 1;
      if (episode.rewards[t]) {
        drawing.fillStyle = colours.ink;
        drawing.textAlign = "center";
        drawing.fillText(episode.rewards[t] > 0 ? "+" : "\u2212", at(t), CLOSE_HEIGHT - 20);
      }
    }
    drawAxis(drawing, first, first + count, at, CLOSE_HEIGHT - 4);
  }

  let font = "";
  const getFont = () => (font ||= getComputedStyle(overview).font);

  return { load, filter, show, resize };
}
