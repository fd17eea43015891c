"""Several processes that train one agent: each has its own actors, and every update is that of all of them together.

`torchrun` starts the processes. All hold the same weights; the gradients, and the means that scale advantages, are
averaged over processes, each of which has as many frames. Without a process group everything here is a process alone.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn


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
    """Return which of them this is, from 0."""
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


def begin(module: nn.Module, seed: int | None) -> None:
    """Give all processes the weights of the first, and each a random stream of its own."""
    if size() == 1:
        return
    for tensor in (*module.parameters(), *module.buffers()):
        dist.broadcast(tensor.data, 0)
    if seed is not None:
        torch.manual_seed(own_seed(seed))


def own_seed(seed: int) -> int:
    """Return this process's part of a seed; the first has the seed itself."""
    return seed if rank() == 0 else int(np.random.SeedSequence([seed, rank()]).generate_state(1)[0])


def broadcast(numbers: list[float]) -> list[float]:
    """Return the numbers of the first process, in all of them."""
    if size() == 1:
        return numbers
    tensor = torch.tensor(numbers, dtype=torch.float64, device=_device())
    dist.broadcast(tensor, 0)
    return list(tensor.tolist())


def any_of(flag: bool) -> bool:
    """Return, in all processes, whether the flag is set in any."""
    if size() == 1:
        return flag
    tensor = torch.tensor(int(flag), device=_device())
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    return bool(tensor)


def gather(content: bytes) -> list[bytes]:
    """Return the contents of all processes, by rank, in the first; nothing in the others."""
    if size() == 1:
        return [content]
    lengths = [torch.zeros((), dtype=torch.int64, device=_device()) for _ in range(size())]
    dist.all_gather(lengths, torch.tensor(len(content), device=_device()))
    longest = int(max(lengths))
    own = torch.zeros(longest, dtype=torch.uint8, device=_device())
    own[: len(content)] = torch.frombuffer(bytearray(content), dtype=torch.uint8) if content else own[:0]
    # An all-gather, because nccl has no gather.
    parts = [torch.empty_like(own) for _ in range(size())]
    dist.all_gather(parts, own)
    if rank() != 0:
        return []
    return [bytes(part[: int(n)].cpu().numpy()) for part, n in zip(parts, lengths, strict=True)]


def scatter(contents: list[bytes]) -> bytes:
    """Return each process its content, given all of them, by rank, in the first."""
    if size() == 1:
        return contents[0]
    lengths = broadcast([float(len(content)) for content in contents] if rank() == 0 else [0.0] * size())
    own = b""
    for of, length in enumerate(map(int, lengths)):
        content = contents[of] if rank() == 0 else bytes(length)
        tensor = torch.frombuffer(bytearray(content) or bytearray(1), dtype=torch.uint8).to(_device())
        dist.broadcast(tensor, 0)
        if of == rank():
            own = bytes(tensor[:length].cpu().numpy())
    return own


def _device() -> torch.device:
    """Return where the process group moves tensors: nccl knows GPUs only."""
    return torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")
