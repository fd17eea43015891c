// The data in the page, unpacked when an episode is shown.
import { creditOf, marksOf } from "./credit.js";
import { decimalsFor } from "./format.js";

const ARRAYS = { uint8: Uint8Array, int32: Int32Array, float32: Float32Array, float64: Float64Array };
const MOST_MARKS = 8;

export function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k += 1) bytes[k] = text.charCodeAt(k);
  return bytes;
}

const unpack = ({ type, data }) => new ARRAYS[type](bytesOf(data).buffer);

/** Everything that the panels need to know of an episode. */
export function openEpisode(packed, exploration, number) {
  const episode = {
    ...packed,
    steps: packed.actions.shape[0],
    width: exploration.action_names.length,
    picture: packed.picture && openPicture(packed.picture),
  };
  for (const name of ["actions", "rewards", "scores", "values", "probabilities", "advantages"]) {
    episode[name] = packed[name] && unpack(packed[name]);
  }
  const credit = creditOf(episode, exploration.gamma);
  const shown = {
    ...{ episode, credit, exploration, number },
    names: exploration.action_names,
    gamma: exploration.gamma,
    hasAdvantages: exploration.source !== null,
    signal: credit.choice ?? credit.luck,
    truths: new Map(packed.truths.map((truth) => [truth.step, truth])),
    byStakes: Float64Array.from(credit.stakes).sort(),
  };
  shown.range = rangeOf(shown);
  shown.spread = extent([...shown.signal, ...shown.signal.map((amount, t) => amount + credit.costs[t])]);
  shown.digits = decimalsFor(Math.max(...shown.range.map(Math.abs)));
  shown.valueDigits = decimalsFor(episode.values.reduce((most, value) => Math.max(most, Math.abs(value)), 0));
  return filterStakes(shown, 0);
}

/** Keep the decisions with the highest stakes: all but this share of the steps. Steps of equal stakes stay together. */
export function filterStakes(shown, share) {
  const { steps } = shown.episode;
  const least = share > 0 ? shown.byStakes[Math.min(steps - 1, Math.floor(share * steps))] : 0;
  const kept = shown.credit.stakes.map((stakes) => Number(stakes >= least));
  const marks = marksOf(shown.credit, kept, MOST_MARKS, 0.5 * 10 ** -shown.digits);
  return Object.assign(shown, { least, kept, marks, marked: [...marks.gains, ...marks.mistakes].sort((a, b) => a - b) });
}

function openPicture(picture) {
  if (picture.type === "images") return { ...picture, index: unpack(picture.index) };
  const [frames, height, width] = picture.cells.shape;
  return { ...picture, frames, size: [width, height], cells: unpack(picture.cells) };
}

/** One scale for all advantages of the episode, the simulated ones with their errors included, and zero. */
function rangeOf({ episode, signal, truths }) {
  const simulated = [...truths.values()].flatMap(({ advantages, errors }) =>
    advantages.flatMap((advantage, a) => [-2, 2].map((times) => (advantage ?? 0) + times * (errors[a] ?? 0))),
  );
  const [low, high] = extent(episode.advantages ?? signal);
  return extent([low, high, ...simulated]);
}

/** The least and the largest number, zero included. */
export function extent(numbers) {
  let [low, high] = [0, 0];
  for (const number of numbers) {
    if (number < low) low = number;
    if (number > high) high = number;
  }
  return low === high ? [-1, 1] : [low, high];
}
