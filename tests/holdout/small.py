"""A small holdout for tests: what it is made from, and two questions."""

from __future__ import annotations

import numpy as np

import quiltwork as qw
from quiltwork.holdout import ReusableHoldout

TRAIN = np.random.default_rng(1).random((300, 2))
HELD = np.random.default_rng(2).random((300, 2))


def off(data):
    """Differs between training set and holdout, so that it ends a round."""
    return np.where(np.isin(data[:, 0], TRAIN[:, 0]), 1.0, 0.1)


def same(data):
    """Is alike in both."""
    return data[:, 0]


def create(path, budget=4, **options):
    return ReusableHoldout(
        TRAIN, HELD, threshold=0.1, noise=0.0005, budget=budget, path=path, **options
    )


def resume(path, **options):
    return ReusableHoldout.resume(path, TRAIN, HELD, **options)


def ledger_at(place, epsilon=99):
    """A ledger that can pay for it, as the options of `create` and `resume`."""
    ledger = qw.Ledger.open(f"sqlite:///{place}")
    ledger.create("held", qw.Clusters(range(300)), None, epsilon)
    return {"ledger": ledger, "dataset": "held"}
