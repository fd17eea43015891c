"""Wrong input is refused with the argument, its value and the rule."""

import re
from typing import Any

import numpy as np
import pytest
import torch

from dae import core

GOOD = {
    "rewards": torch.zeros(2, 3),
    "advantages": torch.zeros(2, 3),
    "q_values": torch.zeros(2, 3),
    "values": torch.zeros(2, 3),
    "bootstrap": torch.zeros(2, 3),
    "terminated": torch.ones(2, 3, dtype=torch.bool),
    "truncated": torch.zeros(2, 3, dtype=torch.bool),
    "gamma": 0.9,
    "lam": 0.9,
}
ENDS = ("bootstrap", "terminated", "truncated", "gamma")
ARGUMENTS = {
    core.dae_loss: ("rewards", "advantages", "values", *ENDS),
    core.duel_loss: ("rewards", "advantages", "values", *ENDS),
    core.indirect_loss: ("rewards", "q_values", "values", *ENDS),
    core.monte_carlo_dae_loss: ("rewards", "advantages", "terminated", "truncated", "gamma"),
    core.n_step_targets: ("rewards", *ENDS),
    core.gae: ("rewards", "values", *ENDS, "lam"),
}
BAD: list[tuple[str, Any, str]] = [
    *((name, torch.zeros(2, 4), "(2, 4)") for name in ("rewards", "advantages", "q_values", "values", "bootstrap")),
    *((name, torch.zeros(2, 4, dtype=torch.bool), "(2, 4)") for name in ("terminated", "truncated")),
    *(
        (name, torch.zeros(2, 3, dtype=torch.int64), "torch.int64")
        for name in ("rewards", "advantages", "values", "bootstrap")
    ),
    *(
        (name, torch.zeros(2, 3, dtype=torch.float64), "torch.float64")
        for name in ("advantages", "values", "bootstrap")
    ),
    *((name, torch.zeros(2, 3), "torch.float32") for name in ("terminated", "truncated")),
    *((name, np.zeros((2, 3)), "ndarray") for name in ("rewards", "values", "bootstrap", "terminated")),
    *(("gamma", gamma, repr(gamma)) for gamma in (1.5, -0.1, float("nan"), "0.9", None)),
    *(("lam", lam, repr(lam)) for lam in (1.01, -1.0, float("inf"))),
]


@pytest.mark.parametrize("function", ARGUMENTS, ids=lambda f: f.__name__)
def test_errors_name_argument_and_value(function: Any) -> None:
    arguments = {name: GOOD[name] for name in ARGUMENTS[function]}
    function(**arguments)
    refused = 0
    for name, value, shown in BAD:
        if name in arguments:
            with pytest.raises((TypeError, ValueError)) as error:
                function(**(arguments | {name: value}))
            message = str(error.value)
            # A wrong first argument may show as a second one that does not fit it.
            assert name in message
            assert shown in message
            assert re.search("must be", message)
            refused += 1
    assert refused >= 8


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 1), (0, 3), (2, 0)])
@pytest.mark.parametrize("function", ARGUMENTS, ids=lambda f: f.__name__)
def test_rows_must_be_two_dimensional_and_not_empty(function: Any, shape: tuple[int, ...]) -> None:
    arguments = {
        name: torch.zeros(shape, dtype=value.dtype) if isinstance(value, torch.Tensor) else value
        for name, value in GOOD.items()
        if name in ARGUMENTS[function]
    }
    with pytest.raises(ValueError, match=re.escape(f"rewards has shape {shape}: it must be (B, T)")):
        function(**arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: core.center(torch.zeros(2, 3), torch.zeros(2, 4)), "probs has shape (2, 4): it must be (2, 3)"),
        (lambda: core.center(torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, 3)), "f has dtype torch.int64"),
        (lambda: core.center(torch.zeros(()), torch.zeros(())), "f has shape (): it must be (..., A)"),
        (lambda: core.normalize_advantages(torch.zeros(2, 3), torch.zeros(3)), "probs has shape (3,)"),
        (
            lambda: core.normalize_advantages(torch.zeros(2), torch.zeros(2), eps=-1),
            "eps is -1: it must be a number at least 0",
        ),
        (
            lambda: core.clipped_surrogate(
                torch.zeros(3), torch.zeros(3), old_log_probs=torch.zeros(3), clip_range=-0.1
            ),
            "clip_range is -0.1",
        ),
        (
            lambda: core.clipped_surrogate(
                torch.zeros(3), torch.zeros(1), old_log_probs=torch.zeros(3), clip_range=0.1
            ),
            "advantages has shape",
        ),
        (
            lambda: core.kl_divergence(torch.zeros(2, 3), old_log_probs=torch.zeros(2, 1)),
            "old_log_probs has shape (2, 1)",
        ),
        (lambda: core.entropy(torch.zeros(0)), "log_probs has shape (0,)"),
    ],
)
def test_other_functions_refuse_wrong_input(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        call()
