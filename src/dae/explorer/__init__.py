"""The credit explorer: one page on which a person sees which decisions of an agent mattered. Needs no torch."""

from dae.explorer.data import (
    Episode as Episode,
    Exploration as Exploration,
    Grid as Grid,
    Images as Images,
    Segment as Segment,
    Truth as Truth,
    csv_rows as csv_rows,
    to_json as to_json,
)
from dae.explorer.page import render as render
