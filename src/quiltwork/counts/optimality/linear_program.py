"""The one linear program of mechanisms for counts, solved by HiGHS.

Minimise Σ costs[i, r]·x[i, r] over stochastic x with Σ_i limits[k, i]·x[i, r] ≤ 0 for every limit k
and answer r. HiGHS answers to about 1e-9; what is made of the answer is repaired and certified by
those who ask, so that nothing rests on its rounding.
Cost: inputs · answers variables, limits · answers constraints.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quiltwork.counts.consumers.losses import FloatArray
from quiltwork.errors import UnsupportedError

_SECONDS = 300.0
_ATTEMPTS = (("highs-ds", 1e-10), ("highs-ipm", 1e-10), ("highs-ds", 1e-7))


def cheapest_mechanism(costs: FloatArray, limits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return x, and for each limit and answer its price ≥ 0: the multipliers of the limits."""
    from scipy import sparse
    from scipy.optimize import linprog

    inputs, answers = costs.shape
    program: dict[str, Any] = {
        "A_eq": sparse.kron(sparse.identity(inputs), np.ones((1, answers)), format="csr"),
        "b_eq": np.ones(inputs),
    }
    if len(limits):
        rows = sparse.kron(sparse.csr_matrix(limits), sparse.identity(answers), format="csr")
        program |= {"A_ub": rows, "b_ub": np.zeros(rows.shape[0])}
    for method, tolerance in _ATTEMPTS:
        options = {
            "primal_feasibility_tolerance": tolerance,
            "dual_feasibility_tolerance": tolerance,
            "time_limit": _SECONDS,
        }
        found = linprog(costs.ravel(), **program, method=method, options=options)
        if found.status == 0:
            prices = np.maximum(0.0, -found.ineqlin.marginals) if len(limits) else np.zeros(0)
            return found.x.reshape(costs.shape), prices.reshape(len(limits), answers)
    raise UnsupportedError(
        f"HiGHS did not solve the program of {costs.size} variables; its numbers are too extreme, "
        "or it is too large: try fewer counts, or less privacy."
    )
