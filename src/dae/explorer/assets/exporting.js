// The shown episode as a file, made in the page: the same content as explore.json and explore.csv have for it.
import { decompose } from "./credit.js";
import { make } from "./dom.js";
import { shortest } from "./format.js";

export function episodeJson({ exploration, episode, credit, gamma, hasAdvantages }) {
  const { episodes, ...about } = exploration;
  const rows = (numbers) => split(Array.from(numbers, shortest), episode.width);
  const sizes = { best: [...credit.best], costs: [...credit.costs], stakes: [...credit.stakes] };
  const content = {
    ...{ seed: episode.seed, score: episode.score, ended: episode.ended },
    actions: [...episode.actions],
    rewards: [...episode.rewards],
    scores: [...episode.scores],
    values: Array.from(episode.values, shortest),
    probabilities: rows(episode.probabilities),
    advantages: hasAdvantages ? rows(episode.advantages) : null,
    luck: [...credit.luck],
    cumulative: [...credit.cumulative],
    ...(hasAdvantages ? sizes : {}),
    segments: episode.segments.map((segment) => ({
      ...segment,
      return: decompose(episode, credit, gamma, segment).total,
    })),
    truths: episode.truths,
  };
  return { ...about, episodes: [content] };
}

export function episodeCsv({ names, episode, credit, hasAdvantages, number }) {
  const about = ["episode", "seed", "step", "segment", "action", "action_name", "reward", "score", "value"];
  const each = (word) => names.map((name) => `${word} ${name}`);
  const amounts = hasAdvantages ? [...each("advantage"), "advantage", "luck", "best", "cost", "stakes"] : ["luck"];
  const lines = [[...about, ...each("probability"), ...amounts, "cumulative"]];
  for (let t = 0; t < episode.steps; t += 1) {
    const action = episode.actions[t];
    const of = (numbers) => Array.from(numbers.subarray(t * episode.width, (t + 1) * episode.width), shortest);
    const line = [number, episode.seed, t, credit.segmentOf[t], action, names[action]];
    line.push(episode.rewards[t], episode.scores[t], shortest(episode.values[t]), ...of(episode.probabilities));
    if (hasAdvantages) line.push(...of(episode.advantages), shortest(credit.choice[t]));
    line.push(credit.luck[t]);
    if (hasAdvantages) line.push(credit.best[t], credit.costs[t], credit.stakes[t]);
    lines.push([...line, credit.cumulative[t]]);
  }
  return lines.map((line) => `${line.map(quoted).join(",")}\r\n`).join("");
}

/** Save a text as a file; nothing leaves the computer. */
export function save(text, kind, name) {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export function fileName({ exploration, episode }, ending) {
  const plain = exploration.env.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "") || "episode";
  return `${plain.slice(0, 60)}-${episode.seed}.${ending}`;
}

function split(numbers, width) {
  const rows = [];
  for (let k = 0; k < numbers.length; k += width) rows.push(numbers.slice(k, k + width));
  return rows;
}

function quoted(cell) {
  const text = String(cell);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
