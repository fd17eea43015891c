"""`dae synthetic`: train what is missing, then draw the figure and print the summary."""

from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Event

import numpy as np
import torch

from dae.experiments.devices import require_device
from dae.experiments.provenance import made_with
from dae.experiments.synthetic.config import Method, SyntheticConfig
from dae.experiments.synthetic.learners import Learners, grouped
from dae.experiments.synthetic.results import Numbers, Results
from dae.experiments.synthetic.summary import draw, summarize
from dae.files import write_atomically
from dae.runs import RunFolder
from dae.terminal.progress import WorkProgress
from dae.terminal.signals import Stopped, StopSignals


def run(config: SyntheticConfig) -> int:
    """Run the experiment, or the rest of it, and return the exit code."""
    device = require_device(config.device)
    results = Results(config.out, config.to_json())
    figures = [config.out / f"synthetic.{kind}" for kind in ("png", "svg", "pdf")]
    with RunFolder(config.out).locked(), StopSignals():
        try:
            results.open(made_with())
            _train_missing(config, device, results)
            results.write_means(config.methods, config.seeds)
            draw(config, results, *figures)
            told = summarize(config, results)
            write_atomically(config.out / "summary.txt", told.encode() + b"\n")
        except Stopped as stopped:
            print(f"stopped by {stopped}; finished seeds are kept. The same command continues.", flush=True)
            return stopped.exit_code
    print(told)
    print(f"data    {results.table}\nmeans   {results.means}\nfigure  {', '.join(map(str, figures))}")
    return 0


def _train_missing(config: SyntheticConfig, device: torch.device, results: Results) -> None:
    """Train groups of seeds side by side, one on each core; a group's results are written when it is finished."""
    groups = [(m, seeds) for m in config.methods for seeds in grouped(results.missing(m, config.seeds))]
    if not groups:
        return
    total = config.iterations * config.seeds * len(config.methods)
    done = total - config.iterations * sum(len(seeds) for _, seeds in groups)
    stop = Event()
    workers = min(len(groups), config.threads or torch.get_num_threads()) if device.type == "cpu" else 1
    with (
        WorkProgress(total, done, "iterations") as progress,
        ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool,
    ):
        trained = {pool.submit(_train, config, *group, device, progress, stop): group for group in groups}
        try:
            for future in as_completed(trained):
                results.add(*trained[future], *future.result())
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def _train(
    config: SyntheticConfig,
    method: Method,
    seeds: list[int],
    device: torch.device,
    progress: WorkProgress,
    stop: Event,
) -> tuple[Numbers, Numbers]:
    """Return the errors and expected returns of a group, (seeds, iterations) each."""
    learners = Learners(config, method, seeds, device)
    told = (
        f"{method}, {'seed' if len(seeds) == 1 else 'seeds'} {seeds[0]}{f' to {seeds[-1]}' if len(seeds) > 1 else ''}"
    )
    errors, returns = [], []
    for i in range(config.iterations):
        if stop.is_set():
            break
        error, expected = learners.iterate()
        errors.append(error)
        returns.append(expected)
        progress.advance(len(seeds), "training", f"{told}: iteration {i + 1}")
    return _numbers(errors), _numbers(returns)


def _numbers(by_iteration: list[torch.Tensor]) -> Numbers:
    """Return (seeds, iterations)."""
    return np.asarray(torch.stack(by_iteration, -1).cpu(), np.float64)
