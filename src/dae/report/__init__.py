"""What runs say together: tables, statistics and figures beside the paper's, from run folders alone. Needs no torch."""

from dae.report.analysis import Analysis as Analysis, analyse as analyse
from dae.report.reading import read_results as read_results
from dae.report.writing import write_report as write_report
