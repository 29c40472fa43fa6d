"""quiltwork: private releases from data where people and moments are tied to each other.

Every public name is imported on first use, so that `import quiltwork` costs little more than
NumPy and a command pays only for the rooms it enters.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from quiltwork._version import __version__
from quiltwork.errors import (
    BudgetExceeded,
    InvalidInputError,
    NotPrivateError,
    QuiltworkError,
    QuiltworkWarning,
    StorageError,
    UnsupportedError,
)

if TYPE_CHECKING:  # what __getattr__ gives at run time, for type checkers and editors
    from quiltwork import accounting as accounting
    from quiltwork import arguments as arguments
    from quiltwork import audit as audit
    from quiltwork import bayesian as bayesian
    from quiltwork import beliefs as beliefs
    from quiltwork import cli as cli
    from quiltwork import counts as counts
    from quiltwork import delimited as delimited
    from quiltwork import demo as demo
    from quiltwork import errors as errors
    from quiltwork import exact as exact
    from quiltwork import files as files
    from quiltwork import frontier as frontier
    from quiltwork import holdout as holdout
    from quiltwork import influence as influence
    from quiltwork import ledger as ledger
    from quiltwork import noise as noise
    from quiltwork import publishing as publishing
    from quiltwork import queries as queries
    from quiltwork import releases as releases
    from quiltwork import report as report
    from quiltwork import reproduce as reproduce
    from quiltwork import series as series
    from quiltwork.accounting import Accountant as Accountant
    from quiltwork.accounting import Spending as Spending
    from quiltwork.accounting import compose as compose
    from quiltwork.accounting import plan as plan
    from quiltwork.bayesian import bayesian_dp as bayesian_dp
    from quiltwork.bayesian import dp_for_bayesian_dp as dp_for_bayesian_dp
    from quiltwork.beliefs import ChainBox as ChainBox
    from quiltwork.beliefs import Clusters as Clusters
    from quiltwork.beliefs import Grid as Grid
    from quiltwork.beliefs import MarkovChain as MarkovChain
    from quiltwork.beliefs import Network as Network
    from quiltwork.counts import Consumer as Consumer
    from quiltwork.counts import GeometricMechanism as GeometricMechanism
    from quiltwork.counts import constraint_matrix as constraint_matrix
    from quiltwork.counts import optimal_mechanism as optimal_mechanism
    from quiltwork.frontier import optimal_for_chain as optimal_for_chain
    from quiltwork.holdout import Ladder as Ladder
    from quiltwork.holdout import ReusableHoldout as ReusableHoldout
    from quiltwork.holdout import plan_holdout as plan_holdout
    from quiltwork.holdout import sklearn as sklearn
    from quiltwork.influence import calibrate as calibrate
    from quiltwork.influence import influence_curve as influence_curve
    from quiltwork.influence import max_influence as max_influence
    from quiltwork.ledger import Ledger as Ledger
    from quiltwork.publishing import EntropyLDiversity as EntropyLDiversity
    from quiltwork.publishing import KAnonymity as KAnonymity
    from quiltwork.publishing import LDiversity as LDiversity
    from quiltwork.publishing import RecursiveLDiversity as RecursiveLDiversity
    from quiltwork.publishing import Table as Table
    from quiltwork.publishing import TCloseness as TCloseness
    from quiltwork.publishing import anonymize as anonymize
    from quiltwork.publishing import max_m as max_m
    from quiltwork.publishing import query_error as query_error
    from quiltwork.publishing import verify_m_privacy as verify_m_privacy
    from quiltwork.releases import Release as Release
    from quiltwork.releases import preview as preview
    from quiltwork.releases import release as release

_ROOMS = {
    "quiltwork.accounting": ("Accountant", "Spending", "compose", "plan"),
    "quiltwork.bayesian": ("bayesian_dp", "dp_for_bayesian_dp"),
    "quiltwork.beliefs": ("MarkovChain", "ChainBox", "Clusters", "Network", "Grid"),
    "quiltwork.holdout": ("plan_holdout", "ReusableHoldout", "Ladder", "sklearn"),
    "quiltwork.influence": ("max_influence", "calibrate", "influence_curve"),
    "quiltwork.ledger": ("Ledger",),
    "quiltwork.releases": ("Release", "preview", "release"),
    "quiltwork.frontier": ("optimal_for_chain",),
    "quiltwork.counts": (
        "GeometricMechanism",
        "Consumer",
        "optimal_mechanism",
        "constraint_matrix",
    ),
    "quiltwork.publishing": (
        "Table",
        "KAnonymity",
        "LDiversity",
        "EntropyLDiversity",
        "RecursiveLDiversity",
        "TCloseness",
        "verify_m_privacy",
        "max_m",
        "anonymize",
        "query_error",
    ),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}
_MODULES = (
    "accounting",
    "arguments",
    "audit",
    "bayesian",
    "beliefs",
    "cli",
    "counts",
    "delimited",
    "demo",
    "errors",
    "exact",
    "files",
    "frontier",
    "holdout",
    "influence",
    "ledger",
    "noise",
    "publishing",
    "queries",
    "releases",
    "report",
    "reproduce",
    "series",
)

__all__ = [
    "BudgetExceeded",
    "InvalidInputError",
    "NotPrivateError",
    "QuiltworkError",
    "QuiltworkWarning",
    "StorageError",
    "UnsupportedError",
    "__version__",
    *_HOME,
    "audit",
    "queries",
    "releases",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"quiltwork.{name}")
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'quiltwork' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
