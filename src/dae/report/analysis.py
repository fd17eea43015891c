"""Everything that a report says, before it is written."""

from collections.abc import Sequence
from dataclasses import dataclass

from dae.paper import ABLATION, ABLATION_REFERENCE, REFERENCE
from dae.report.cells import Cells, make_cells
from dae.report.comparing import Comparison, comparisons
from dae.report.departures import banner
from dae.report.normalising import Normalised, normalise
from dae.report.reading import KINDS, LeftOut, Result, count_left_out, require_some
from dae.report.text import plural
from dae.runs import Axis


@dataclass(frozen=True)
class Analysis:
    """What the runs say together."""

    cells: Cells
    left_out: list[LeftOut]
    compared: list[Comparison]
    normalised: list[Normalised]  # by domain: GAE's scale first, then Indirect's

    @property
    def counted(self) -> str:
        """Say how many runs count, and what was left out: "12 runs in 4 groups of seeds; left out: 1 torn"."""
        shown = sum(len(cell.runs) for cell in self.cells)
        beside = sum(len(other.runs) for cell in self.cells for other in cell.others)
        text = f"{plural(shown, 'run')} in {plural(len(self.cells), 'group')} of seeds"
        if beside:
            text += f", {beside:,} more with other settings beside them"
        return f"{text}; {count_left_out(self.left_out)}"

    @property
    def departures(self) -> list[str]:
        """Say for each domain where its runs are not what the paper ran."""
        return banner(self.cells)

    @property
    def axis(self) -> Axis:
        return next(iter(self.cells)).axis

    def scale(self, domain: str) -> Normalised | None:
        """Return the scale that the robust statistics of a domain are on, None if there is none."""
        return next((n for n in self.normalised if n.domain == domain and n.groups), None)


def analyse(records: Sequence[Result | LeftOut]) -> Analysis:
    """Analyse the runs; refuse if none of them counts."""
    left_out = [record for record in records if isinstance(record, LeftOut)]
    cells, duplicates = make_cells(record for record in records if isinstance(record, Result))
    left_out = sorted([*left_out, *duplicates], key=lambda left: (KINDS.index(left.kind), left.path))
    require_some(records)
    references = {domain: [REFERENCE] for domain in cells.values("domain")}
    for domain, of_domain in references.items():
        if set(ABLATION[1:]) & set(cells.where(domain=domain).values("method")):
            of_domain.append(ABLATION_REFERENCE)
    found = [normalise(cells, domain, reference) for domain, names in references.items() for reference in names]
    return Analysis(cells, left_out, comparisons(cells), [one for one in found if one])
