"""What runs say together: tables, statistics and figures beside the paper's, from run folders alone. Needs no torch."""

from dae.report.analysis import Analysis, analyse
from dae.report.reading import find_folders, read_runs
from dae.report.writing import write_report

__all__ = ["Analysis", "analyse", "find_folders", "read_runs", "write_report"]
