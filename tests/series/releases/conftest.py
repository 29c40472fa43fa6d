"""Releases without the trouble of calibration: a record with the noise that a test asks for."""

from fractions import Fraction

import numpy as np
import pytest

from quiltwork import queries
from quiltwork.series import Release


def make_release(query=None, noisy=(3, -2, 9), scale=Fraction(5, 2), points=10, states=None):
    query = query or queries.histogram()
    states = states or tuple("abcdefgh"[: len(noisy)])
    offset, unit = query.grid(points)
    return Release(
        value=query.present(np.array(noisy, dtype=object), states, points),
        cells=query.cells(states),
        query=query,
        exact_epsilon=Fraction(1, 10),
        noise_scale=Fraction(scale),
        noisy=tuple(noisy),
        offset=offset,
        unit=unit,
        rounding=query.rounding((), points, 1),
        total=query.total(points, 1),
        points=points,
        length=points,
        subjects=1,
        method="exact",
        node=3,
        quilt=(1, 7),
        influence=0.25,
        secrets=None,
        beliefs=("MarkovChain(…)",),
        belief_digest="0" * 64,
    )


@pytest.fixture(scope="session", name="make_release")
def make_release_fixture():
    return make_release
