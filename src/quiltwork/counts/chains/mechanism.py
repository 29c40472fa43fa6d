"""`optimal_for_chain`: the optimal mechanism for one count, one consumer and given chains.

It is optimal among mechanisms that see only the count and answer in 0..n. It relies entirely on its
beliefs, so it takes a cap on its plain DP level, which ledgers charge; without a cap nothing else
may be released from the same series.

Theorem: docs/theory/optimal-mechanism.md
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from quiltwork.arguments import instance
from quiltwork.audit.inner import require_markov_chains
from quiltwork.beliefs import Belief, MarkovChain
from quiltwork.beliefs.matrices import FloatArray
from quiltwork.budget import Spending
from quiltwork.budget.payment import Request
from quiltwork.counts.alpha_levels import alpha_for_epsilon
from quiltwork.counts.chains.chain_program import (
    ChainCertificate,
    count_laws,
    number_of_inequalities,
    outward_laws,
    repair,
    solve,
    table_leakage,
)
from quiltwork.counts.consumers.consumer import Consumer
from quiltwork.counts.contributors import belief_digest
from quiltwork.counts.exact_draws import ExactMechanism
from quiltwork.counts.geometric_mechanism import GeometricMechanism
from quiltwork.counts.optimality.exact_matrix import FractionMatrix
from quiltwork.errors import InvalidInputError, QuiltworkWarning, UnsupportedError
from quiltwork.exact import Number, float_up, integer, positive_fraction, privacy_level
from quiltwork.influence import calibrate
from quiltwork.queries import Query
from quiltwork.results import plain
from quiltwork.wording import argument

LARGEST = 120
_MOST_LEVEL = 100
_NAME = "optimal for a chain"


@dataclass(frozen=True, eq=False)
class ChainMechanism(ExactMechanism):
    """The optimal private mechanism for one count under given chains.

    With a cap, a ledger charges a release by the cap. Without one, a release composes with nothing:
    on a series with other releases it is refused, and nothing may follow it.

    Attributes:
        matrix: P(answer | count) as floats; answers are drawn from `exact`.
        exact: the same in fractions whose rows add up to 1.
        expected_loss: the consumer's expected loss.
        certificate: what was verified in integers.
        beliefs: the chains it is private under, and no others.
        length: the number of time points.
        query: the count.
        consumer: whose expected loss was minimised.
    """

    schema = ("chain-mechanism", 1)

    matrix: FloatArray
    exact: FractionMatrix = field(repr=False)
    expected_loss: float
    certificate: ChainCertificate
    beliefs: tuple[MarkovChain, ...]
    length: int
    query: Query
    consumer: Consumer = field(repr=False)

    def leakage(self, beliefs: Belief | Sequence[Belief] | None = None) -> float:
        """Return the leakage of one answer, in floats, under these beliefs or its own.

        Under a slightly different chain it may exceed epsilon.
        """
        return table_leakage(beliefs or self.beliefs, self.length, self.query, self.matrix)

    @cached_property
    def geometric_loss(self) -> float:
        """The consumer's loss under exactly calibrated geometric noise and its optimal remap.

        Its difference from `expected_loss` is the price of the simpler mechanism.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QuiltworkWarning)
            level, method = self.certificate.epsilon, "optimal-scale"
            scale = calibrate(self.beliefs, self.length, level, method, self.query).exact_scale
        alpha = alpha_for_epsilon(1 / scale) if scale else Fraction(0)
        return GeometricMechanism(self.n, alpha=alpha).remap(self.consumer).expected_loss

    def _debit(self) -> Any:
        start, stop = self.query.window(self.length)
        if self.certificate.dp_epsilon is None:
            spending = Spending(
                start,
                stop,
                composes_by="nothing",
                epsilon=self.certificate.epsilon,
                label="optimal mechanism without a cap",
            )
            about = {"belief_digest": belief_digest(self.beliefs), "length": self.length}
            return Request(spending, _NAME, {**about, "table": self._table()})
        return {
            "mechanism": _NAME,
            "table": self._table(),
            "dp_epsilon": self.certificate.dp_epsilon,
            "start": start,
            "stop": stop,
        }

    def explain(self) -> str:
        """Return its expected loss, its leakage, its price and its assumptions."""
        cap = self.certificate.dp_epsilon
        priced = (
            "It has no plain DP level: nothing else may be released from the same series."
            if cap is None
            else "Replacing one time point changes an answer's probability by a factor of at most "
            f"e^{float(cap):g}, which is what a ledger charges."
        )
        beliefs = len(self.beliefs)
        return "\n".join(
            [
                f"Expected loss {self.expected_loss:.6g}; no mechanism with the same constraints "
                f"is below {self.certificate.lower_bound:.6g}.",
                f"Leaks at most {float(self.certificate.epsilon):g} about any time point under "
                f"the {beliefs} belief{'s' * (beliefs > 1)} given, verified in integers "
                f"({self.certificate.checked:,} inequalities).",
                priced,
                "It relies on these beliefs entirely: compute leakage(beliefs) under others.",
            ]
        )

    def body(self) -> dict[str, Any]:
        """Return the mechanism as JSON values."""
        own = {name: getattr(self, name) for name in ("length", "expected_loss", "matrix")}
        return {**plain(self.certificate), **plain(own)}


def optimal_for_chain(
    beliefs: Belief | Sequence[Belief],
    length: int,
    epsilon: Number,
    user: Consumer,
    query: Query,
    dp_epsilon: Number | None = None,
) -> ChainMechanism:
    """Return the private mechanism for a count with the least expected loss.

    Args:
        beliefs: one chain or several with known starts; it is private under each of them.
        length: the number of time points.
        epsilon: the largest leakage of an answer about any time point.
        user: the consumer whose expected loss is minimised, with a prior over 0..n.
        query: `queries.count(state)`, perhaps on a window of n time points.
        dp_epsilon: a cap on the level for replacing one time point. None for no cap: the mechanism
            then composes with nothing.

    Raises:
        UnsupportedError: for other beliefs or queries, and above n = 120.

    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
    >>> from quiltwork import queries
    >>> best = optimal_for_chain(chain, 6, 1, Consumer(), queries.count(1), dp_epsilon=2)
    >>> best.leakage() <= 1, best.expected_loss < best.geometric_loss
    (True, True)

    Theorem: docs/theory/optimal-mechanism.md
    """
    level = privacy_level(epsilon, "epsilon")
    cap = None if dp_epsilon is None else positive_fraction(dp_epsilon, "dp_epsilon")
    if max(level, cap or 0) > _MOST_LEVEL:
        raise InvalidInputError(
            f"A level above {_MOST_LEVEL} hides nothing, and its program cannot be solved; give a "
            "smaller epsilon and dp_epsilon."
        )
    instance(user, Consumer, "user")
    chains = require_markov_chains(beliefs)
    points = integer(length, "length", 1)
    laws = count_laws(chains, points, query)
    if laws.n > LARGEST:
        raise UnsupportedError(
            f"The program for n = {laws.n} has {(laws.n + 1) ** 2:,} variables; the limit is "
            f"n = {LARGEST}. Use calibrate(…, {argument('method', 'optimal-scale')}) and a remap "
            "instead."
        )
    answers = np.arange(laws.n + 1)
    costs = user.probabilities(laws.n)[:, None] * user.loss.table(answers[:, None], answers[None])
    solution = solve(laws, costs, float(level), None if cap is None else float(cap))
    rounded_laws = outward_laws(chains, points, query)
    table, total, share = repair(solution.table, rounded_laws, level, cap)
    exact = [[Fraction(int(x), total) for x in row] for row in table]
    matrix = np.array([[float(x) for x in row] for row in exact])
    loss = float((matrix * costs).sum())
    return ChainMechanism(
        matrix=matrix,
        exact=exact,
        expected_loss=loss,
        certificate=ChainCertificate(
            epsilon=level,
            dp_epsilon=cap,
            mixed=float_up(share),
            lower_bound=min(solution.bound, loss),
            checked=number_of_inequalities(rounded_laws, laws.n + 1, cap),
        ),
        beliefs=chains,
        length=points,
        query=query,
        consumer=user,
    )
