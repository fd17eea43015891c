"""Packages whose names load on first use, so that light commands do not wait for PyTorch or Numba."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def load_lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package: `homes` says which module each public name lives in.

    A name whose module ends with the name itself is that module.
    """

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}; its public names are {', '.join(sorted(homes))}"
            )
        module = import_module(homes[name])
        return module if homes[name].endswith(f".{name}") else getattr(module, name)

    return __getattr__
