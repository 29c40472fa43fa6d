"""A release as an OpenDP measurement: `opendp_measurement` makes a plugin for OpenDP's contexts.

The measurement answers a query on a series with the noise that a belief requires. To OpenDP's
accountant its level is that for substituting time points, so it composes with measurements of
OpenDP's own. That accounting assumes independent time points; for the leakage under a belief debit
the same release in a ledger or an `Accountant`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from quiltwork.beliefs import Belief, as_beliefs
from quiltwork.budget.accounting.headroom import planned_spending
from quiltwork.errors import UnsupportedError
from quiltwork.exact import Number, float_up, integer
from quiltwork.influence import calibrate
from quiltwork.queries import Query
from quiltwork.series.releases.answer import release

_ATOMS = {str: "String", bool: "bool", int: "i32"}


def opendp_measurement(
    query: Query, beliefs: Belief | Sequence[Belief], length: int, epsilon: Number
) -> Any:
    """Return an OpenDP measurement that answers a query as `release` does, with geometric noise.

    Its input is a vector of `length` states under the Hamming distance (substituted time points),
    its output measure is pure ε, and its privacy map is d_in times the level for substituting one
    time point. OpenDP must be installed, with the features "contrib" and "honest-but-curious"
    enabled, since it cannot verify a measurement written in Python. Every state of the data must be
    one of the beliefs' states: which they are is public.

    Args:
        query: a count, a histogram or another query with a level per time point.
        beliefs: one belief or a list, for which the noise is calibrated.
        length: the number of time points.
        epsilon: the level of the release under the beliefs.

    Raises:
        UnsupportedError: without OpenDP, for queries without such a level, and for beliefs whose
            states are not all text, all whole numbers or all truth values.

    Example::

        import opendp.prelude as dp
        dp.enable_features("contrib", "honest-but-curious")
        walks = opendp_measurement(queries.count("walk"), chain, 100, 1.0)
        walks(["rest"] * 100), walks.map(d_in=1)
        # (3, 0.045)
    """
    try:
        import opendp.prelude as dp
    except ImportError:
        raise UnsupportedError(
            "opendp_measurement needs OpenDP: pip install opendp, then try again."
        ) from None
    members, points = as_beliefs(beliefs), integer(length, "length", 1)
    states = next((belief.states for belief in members if belief.states is not None), ())
    kinds = {type(state) for state in states}
    atom = _ATOMS.get(kinds.pop()) if len(kinds) == 1 else None
    if atom is None:
        raise UnsupportedError(
            "An OpenDP vector has elements of one type: states must all be text, all whole numbers "
            "or all truth values."
        )
    calibration = calibrate(members, points, epsilon, query=query)
    level = None
    if calibration.integer_scale and query.mechanism != "exponential":
        level = planned_spending(query, calibration.integer_scale, points).dp_epsilon
    if level is None:
        raise UnsupportedError(
            "This query has no noise with a level for substituting one time point, so OpenDP could "
            "not account for it."
        )
    level_up = float_up(level)

    def answer(data: list[Any]) -> Any:
        return np.asarray(release(data, query, members, epsilon).value).tolist()

    return dp.m.make_user_measurement(
        input_domain=dp.vector_domain(dp.atom_domain(T=atom), size=points),
        input_metric=dp.hamming_distance(),
        output_measure=dp.max_divergence(),
        function=answer,
        privacy_map=lambda d_in: d_in * level_up * (1 + 2.0**-50),
    )
