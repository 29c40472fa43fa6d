"""Answers from a holdout that stay true however often, and however adaptively, one asks.

`ReusableHoldout` answers questions (Algorithm 1 of the paper), `plan_holdout` says how many rows a
promise takes, `Ladder` is a leaderboard, and `sklearn` plugs the holdout into scikit-learn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quiltwork.holdout import sklearn as sklearn
    from quiltwork.holdout.answers import Answer as Answer
    from quiltwork.holdout.ladder import Ladder as Ladder
    from quiltwork.holdout.planning import HoldoutPlan as HoldoutPlan
    from quiltwork.holdout.planning import plan_holdout as plan_holdout
    from quiltwork.holdout.reusable import ReusableHoldout as ReusableHoldout

_HOME = {
    "Answer": "answers",
    "HoldoutPlan": "planning",
    "Ladder": "ladder",
    "ReusableHoldout": "reusable",
    "plan_holdout": "planning",
}

__all__ = ["Answer", "HoldoutPlan", "Ladder", "ReusableHoldout", "plan_holdout", "sklearn"]


def __getattr__(name: str) -> Any:
    if name == "sklearn":
        return importlib.import_module("quiltwork.holdout.sklearn")
    if name in _HOME:
        return getattr(importlib.import_module(f"quiltwork.holdout.{_HOME[name]}"), name)
    raise AttributeError(f"module 'quiltwork.holdout' has no attribute {name!r}")
