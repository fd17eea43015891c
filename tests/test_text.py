"""Numbers in tables keep what matters of them."""

import math

import pytest

from dae.text import decimals_for, short_text, with_error


@pytest.mark.parametrize("error", [3.0, 0.5, 0.04, 0.0123, 0.00099, 4e-5, 1e-9, 2e-17])
@pytest.mark.parametrize("mean", [0.0, 0.5, -3.25, 1234.5])
def test_a_standard_error_never_looks_like_none(mean: float, error: float) -> None:
    for text in (with_error(mean, error, decimals_for([error], 2)), short_text(mean, error)):
        shown_mean, shown = map(float, text.split(" ± "))
        assert shown == pytest.approx(error, rel=0.5), text
        assert abs(shown_mean - mean) <= max(error, 0.006), text


def test_an_error_of_exactly_0_is_told_as_such_and_none_is_not_told() -> None:
    assert with_error(0.5, 0.0, 2) == "0.50 ± 0"
    assert with_error(0.5, math.nan, 2) == "0.50"
    assert short_text(0.5, 0.0) == "0.500 ± 0"


@pytest.mark.parametrize("mean", [9999.9, 0.0123, 7.5e-9, 3.3e-38])
@pytest.mark.parametrize("error", [0.1, 1.4e-9, 1e-38, math.nan])
def test_short_texts_fit_into_a_table(mean: float, error: float) -> None:
    assert len(short_text(mean, error)) <= 16
