"""Bayesian differential privacy: what a DP mechanism betrays to every adversary.

An adversary knows any rows and asks about another one; under dependence the unknown rows tell on
it. Functions here translate between the level of a DP mechanism and its Bayesian level.
"""

from quiltwork.bayesian.levels import bayesian_dp, dp_for_bayesian_dp
from quiltwork.bayesian.reversible import ReversibleLevel, reversible_level

__all__ = ["ReversibleLevel", "bayesian_dp", "dp_for_bayesian_dp", "reversible_level"]
