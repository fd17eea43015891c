"""What runs say together: tables, statistics and figures beside the paper's, from run folders alone. Needs no torch."""

from dae.report.analysis import Analysis, analyse
from dae.report.reading import read_results
from dae.report.writing import write_report

__all__ = ["Analysis", "analyse", "read_results", "write_report"]
