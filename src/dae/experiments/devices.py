"""Where networks run: a device that is asked for is used, or refused."""

import torch

from dae.errors import InvalidValue


def require_device(name: str) -> torch.device:
    """Return a device that is there; `auto` is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].partition(". ")[0]
        raise InvalidValue(f"device is {name!r}: it must be one that is available, auto or cpu ({reason})") from error
