"""Answers from a holdout that stay true however often, and however adaptively, one asks.

`ReusableHoldout` answers questions (Algorithm 1 of the paper), `plan_holdout` says how many rows a
promise takes, `Ladder` is a leaderboard, and `sklearn` plugs the holdout into scikit-learn.
"""

from quiltwork._lazy import offered

__getattr__, __dir__, __all__ = offered(__name__, __file__)
