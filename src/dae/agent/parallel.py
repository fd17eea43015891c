"""Several processes that train one agent: each has its own actors, and every update uses the data of all.

`torchrun` starts the processes. All hold the same weights; the gradients, and the means that scale advantages, are
averaged over the processes, which all have the same number of steps. Without a process group everything here works
as for a single process.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor, nn

from dae.errors import UserError, one_line

Value = TypeVar("Value")


@contextlib.contextmanager
def joined(device: str) -> Iterator[None]:
    """Join the processes that torchrun started, if it did, and leave them at the end."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        yield
        return
    with_gpus = device != "cpu" and torch.cuda.is_available()
    if with_gpus:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if with_gpus else "gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


def size() -> int:
    """Return how many processes train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return the rank of this process, from 0."""
    return dist.get_rank() if size() > 1 else 0


def average(tensor: Tensor) -> Tensor:
    """Return the mean of a tensor over the processes."""
    if size() == 1:
        return tensor
    total = tensor.detach().clone()
    dist.all_reduce(total)
    return total / size()


def mean(x: Tensor) -> Tensor:
    """Return the mean over the elements of all processes' tensors, which have the same shape."""
    return average(x.mean())


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace every gradient by its mean over the processes, in one exchange."""
    if size() == 1:
        return
    gradients = [p.grad for p in parameters if p.grad is not None]
    flat = average(torch.cat([gradient.reshape(-1) for gradient in gradients]))
    parts = torch.split(flat, [gradient.numel() for gradient in gradients])
    for gradient, averaged in zip(gradients, parts, strict=True):
        gradient.copy_(averaged.view_as(gradient))


def begin(module: nn.Module, env: VecEnv | None, seed: int | None) -> None:
    """Give all processes the weights of the first, and each random streams of its own, also of its environments."""
    if size() == 1:
        return
    for tensor in (*module.parameters(), *module.buffers()):
        dist.broadcast(tensor.data, 0)
    if seed is not None:
        torch.manual_seed(own_seed(seed))
        if env is not None:
            env.seed(own_seed(seed))


def own_seed(seed: int) -> int:
    """Return the seed of this process, derived from a common one; the first process uses the common seed itself."""
    return seed if rank() == 0 else int(np.random.SeedSequence([seed, rank()]).generate_state(1)[0])


def broadcast(value: Value) -> Value:
    """Return the value of the first process, in all of them."""
    if size() == 1:
        return value
    values = [value]
    dist.broadcast_object_list(values, 0)
    return values[0]


def any_of(flag: bool) -> bool:
    """Return, in all processes, whether the flag is set in any."""
    if size() == 1:
        return flag
    flags = [False] * size()
    dist.all_gather_object(flags, flag)
    return any(flags)


def gather(value: Value) -> list[Value]:
    """Return the values of all processes, ordered by rank, in the first process; an empty list in the others."""
    if size() == 1:
        return [value]
    values: list[Any] | None = [None] * size() if rank() == 0 else None
    dist.gather_object(value, values)
    return values or []


def scatter(values: Sequence[Value]) -> Value:
    """Return to each process its own value; the first process passes all of them, ordered by rank."""
    if size() == 1:
        return values[0]
    own: list[Any] = [None]
    dist.scatter_object_list(own, list(values) if rank() == 0 else None)
    value: Value = own[0]
    return value


def together(what: Callable[[], Value]) -> Value:
    """Do something in every process; if it fails in one, all fail, and the first can say what happened."""
    if size() == 1:
        return what()
    result, problem = None, None
    try:
        result = what()
    except Exception as error:
        problem = error
    messages: list[Any] = [None] * size()
    dist.all_gather_object(messages, None if problem is None else f"{type(problem).__name__}: {one_line(problem)}")
    failed = [(of, message) for of, message in enumerate(messages) if message is not None]
    if failed:
        of, message = failed[0]
        raise problem or UserError(f"process {of} of {size()} failed: {message}")
    return result  # type: ignore[return-value]


def on_first(what: Callable[[], Value]) -> Value | None:
    """Do something in the first process only, and return its result there; if it fails, all processes fail."""
    return together(lambda: what() if rank() == 0 else None)


def from_first(what: Callable[[], Value]) -> Value:
    """Do something in the first process only, and return its result in all of them."""
    result: Value = broadcast(on_first(what))  # type: ignore[assignment]
    return result
