"""Bayesian DP bounds of random networks against every adversary and the worst mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from evidence.bayesian_enumeration import leakage_of, mechanisms, worst_leakage
from evidence.random_networks import joint_of, random_network
from quiltwork.influence import bayesian_dp, dp_for_bayesian_dp

NAME = "Bayesian DP of networks"
CLAIM = (
    "no DP mechanism betrays more than bayesian_dp says, to any adversary who knows any rows, on "
    "any values; and no mechanism of the level dp_for_bayesian_dp betrays more than epsilon"
)

LEVELS = (0.1, 0.5, 1.5, 4.0)
EPSILONS = (0.3, 1.0, 4.0)
SOLVER = 1e-6


def check(cases: int, progress: Callable[[int, int], None] = lambda done, total: None) -> dict:
    rng = np.random.default_rng(1789)
    counts = {"networks": 0, "adversaries": 0, "mechanisms enumerated": 0, "levels inverted": 0}
    closest, sharper = 0.0, []
    for case in range(cases):
        nodes = int(rng.integers(2, 5))
        net = random_network(rng, nodes, 3 if nodes < 4 else 2)
        joint = joint_of(net)
        level = float(rng.choice(LEVELS))
        true = worst_leakage(joint, level)
        tight = bayesian_dp(net, level)
        paper = bayesian_dp(net, level, bound="paper")
        assert true <= tight + SOLVER, (net.to_json(), level, true, tight)
        assert tight <= paper * (1 + 1e-9), (net.to_json(), level, tight, paper)
        tried = [leakage_of(joint, one) for one in mechanisms(joint.shape, level)]
        assert max(tried) <= min(tight, true + SOLVER) + 1e-9, (net.to_json(), level, max(tried))
        counts["networks"] += 1
        counts["adversaries"] += nodes * 2 ** (nodes - 1)
        counts["mechanisms enumerated"] += len(tried)
        closest = max(closest, true / tight if 0 < tight < nodes * level else 0.0)
        sharper.append(tight / paper if paper else 1.0)
        counts["levels inverted"] += _back(rng, net, joint)
        progress(case + 1, cases)
    return {
        **counts,
        "largest leakage / bound, where a quilt beats the whole network": f"{closest:.4f}",
        "tight / paper, mean": f"{np.mean(sharper):.4f}",
        "violations": 0,
    }


def _back(rng: np.random.Generator, net, joint: np.ndarray) -> int:
    epsilon = float(rng.choice(EPSILONS))
    for bound in ("tight", "paper"):
        level = dp_for_bayesian_dp(net, epsilon, bound=bound)
        if math.isinf(level):
            assert worst_leakage(joint, 1.0) == 0
        else:
            assert worst_leakage(joint, level) <= epsilon + SOLVER, (net.to_json(), epsilon, level)
            assert bayesian_dp(net, level, bound=bound) <= epsilon * (1 + 1e-9)
    return 2


def run(progress: Callable[[int, int], None]) -> dict:
    return check(500, progress)
