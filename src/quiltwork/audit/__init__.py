"""Audit: the exact level of a release under a belief, and the least noise that has a given level.

`leakage` answers for what was released, `worst_case` also names the secret and the output,
`report` holds the truth against a promise, `odds` shows what one output told, `misfit` asks under
other beliefs, and `strongest_adversary` knows other time points. `ends` decides at any length where
the extreme outputs tell most, `laws` everywhere else. `check_certificate`
checks the proof that a calibration's noise suffices, in exact fractions.
"""

from quiltwork.audit.adversaries import Adversary, strongest_adversary
from quiltwork.audit.certificates import check_certificate
from quiltwork.audit.exact_leakage import Leakage, leakage, worst_case
from quiltwork.audit.misfits import Misfit, misfit
from quiltwork.audit.odds import Odds, odds
from quiltwork.audit.promise import Report, report

__all__ = [
    "Adversary",
    "Leakage",
    "Misfit",
    "Odds",
    "Report",
    "check_certificate",
    "leakage",
    "misfit",
    "odds",
    "report",
    "strongest_adversary",
    "worst_case",
]


def __dir__() -> list[str]:
    return sorted(__all__)
