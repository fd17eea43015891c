// Where a return came from: the same arithmetic as credit.py, which says why it adds up.

/** The credit of each step. Without advantages `choice` is null, and luck has the choice's part as well. */
export function creditOf(episode, gamma) {
  const { steps, width, values, rewards, actions, advantages, segments } = episode;
  const segmentOf = new Int32Array(steps);
  const luck = new Float64Array(steps);
  const cumulative = new Float64Array(steps);
  const costs = new Float64Array(steps);
  const stakes = new Float64Array(steps);
  const best = Int32Array.from(actions);
  const choice = advantages ? new Float64Array(steps) : null;
  segments.forEach((segment, number) => {
    let sum = 0;
    let discount = 1;
    for (let t = segment.start; t < segment.end; t += 1) {
      segmentOf[t] = number;
      const last = t === segment.end - 1;
      const next = last ? (segment.terminated ? 0 : segment.bootstrap) : values[t + 1];
      luck[t] = rewards[t] + gamma * next - values[t];
      if (choice) {
        const row = advantages.subarray(t * width, (t + 1) * width);
        let least = 0;
        best[t] = 0;
        for (let a = 1; a < width; a += 1) {
          if (row[a] > row[best[t]]) best[t] = a;
          if (row[a] < row[least]) least = a;
        }
        choice[t] = row[actions[t]];
        luck[t] -= choice[t];
        costs[t] = row[best[t]] - choice[t];
        stakes[t] = row[best[t]] - row[least];
      }
      sum += discount * (choice ? choice[t] : luck[t]);
      cumulative[t] = sum;
      discount *= gamma;
    }
  });
  return { choice, luck, best, costs, stakes, cumulative, segmentOf };
}

/** The parts of the return from a step of a segment to its end, discounted to that step. */
export function decompose(episode, credit, gamma, segment, origin = segment.start) {
  const length = segment.end - origin;
  const choices = new Float64Array(length);
  const luck = new Float64Array(length);
  let total = 0;
  for (let k = 0; k < length; k += 1) {
    const discount = gamma ** k;
    total += discount * episode.rewards[origin + k];
    luck[k] = discount * credit.luck[origin + k];
    if (credit.choice) choices[k] = discount * credit.choice[origin + k];
  }
  const rest = segment.terminated ? 0 : gamma ** length * segment.bootstrap;
  return { origin, value: episode.values[origin], choices, luck, rest, total: total + rest };
}

/** The bars of the waterfall: V̂, the largest parts in the order of time, the sums of the others, and G. */
export function waterfallParts(decomposition, hasAdvantages, most) {
  const { origin, value, choices, luck, total } = decomposition;
  const pick = (amounts, kind) => {
    const places = largest(amounts, most, Math.abs);
    const shown = places.map((k) => ({ kind, step: origin + k, amount: amounts[k] }));
    const sum = amounts.reduce((all, amount) => all + amount, 0);
    const picked = shown.reduce((all, part) => all + part.amount, 0);
    const others = { kind: `other ${kind}`, step: null, count: amounts.length - shown.length, amount: sum - picked };
    return [shown, others];
  };
  const [byChoice, otherChoices] = hasAdvantages ? pick(choices, "choice") : [[], null];
  const [byLuck, otherLuck] = pick(luck, "luck");
  const single = [...byChoice, ...byLuck].sort((a, b) => a.step - b.step);
  const others = [otherChoices, otherLuck].filter((part) => part && part.count);
  let sum = 0;
  const parts = [{ kind: "value", step: origin, amount: value }, ...single, ...others].map((part) => {
    const from = sum;
    sum += part.amount;
    return { ...part, from, to: sum };
  });
  return [...parts, { kind: "return", step: null, amount: total, from: 0, to: total }];
}

/**
 * The steps with the biggest gains and the biggest mistakes among those that are kept, by Â of what was done; and others
 * where Â is larger for what was not done. The latter is less certain: what is rarely done is rarely learned from.
 */
export function marksOf(credit, kept, most, least) {
  const of = (amounts) => largest(amounts, most, (amount, t) => (kept[t] && amount >= least ? amount : 0));
  const signal = credit.choice ?? credit.luck;
  const mistakes = of(signal.map((amount) => -amount));
  const doubts = of(credit.costs.map((cost, t) => (mistakes.includes(t) ? 0 : cost)));
  return { gains: of(signal), mistakes, doubts };
}

/** The places of the largest numbers, largest first, by a measure; those of measure 0 do not count. */
export function largest(numbers, most, measure) {
  const found = [];
  for (let k = 0; k < numbers.length; k += 1) {
    const size = measure(numbers[k], k);
    if (!size || (found.length === most && size <= found[most - 1].size)) continue;
    let place = found.length;
    while (place > 0 && found[place - 1].size < size) place -= 1;
    found.splice(place, 0, { k, size });
    if (found.length > most) found.pop();
  }
  return found.map((one) => one.k);
}
