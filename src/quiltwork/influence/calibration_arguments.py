"""Reading what calibration and the influence curve are asked: lengths, methods, secrets, costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import numpy as np

from quiltwork.arguments import choice, listed
from quiltwork.beliefs import Belief, Gaussian, as_beliefs
from quiltwork.beliefs.secrets import SecretPairs, read_secrets
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import integer, proper_fraction, shortened
from quiltwork.influence.belief_bound import BeliefBound, CalibrationProblem
from quiltwork.influence.gaussian import GaussianBound
from quiltwork.influence.quilts.protocol import InfluenceMethod
from quiltwork.influence.quilts.quilt_bound import QuiltBound, default_quilts
from quiltwork.influence.sweep import can_be_swept
from quiltwork.influence.sweep_bound import SweepBound
from quiltwork.wording import argument

if TYPE_CHECKING:
    from quiltwork.queries.query import Query

NoiseKind: TypeAlias = Literal["geometric", "gaussian"]
NOISES: tuple[NoiseKind, ...] = get_args(NoiseKind)
METHODS: tuple[str, ...] = get_args(InfluenceMethod)
LONGEST = 10**13
"""Changes of queries and sums of lengths stay within 64-bit integers."""


def bounds_for(
    beliefs: Any, length: Any, method: Any, pairs: SecretPairs | None = None
) -> tuple[BeliefBound, ...]:
    """Return one bound per belief, all for the same length.

    Of `pairs` only sweeps make use; what quilts say of all pairs holds for these.

    Raises:
        InvalidInputError: for bad beliefs, lengths and methods.
        UnsupportedError: for a method that is not available here.
    """
    members = as_beliefs(beliefs)
    points = common_length(members, length)
    wanted = parse_method(method)
    if wanted == "sweep":
        for belief in members:
            if not isinstance(belief, Gaussian) and not can_be_swept(belief):
                raise UnsupportedError(
                    "A sweep needs a chain or a network that is a tree (no cycle, no node with two "
                    f"parents), and this {type(belief).__name__} is neither; leave method out."
                )
    return tuple(_bound(belief, points, wanted, pairs) for belief in members)


def _bound(
    belief: Belief, length: int, wanted: InfluenceMethod | None, pairs: SecretPairs | None
) -> BeliefBound:
    if isinstance(belief, Gaussian):
        if wanted is not None:
            raise UnsupportedError(
                f"{argument('method', wanted)} is about states, and Gaussian beliefs are about "
                "numbers, with "
                "one method of their own; leave method out."
            )
        return GaussianBound(belief, length)
    method = default_method(belief) if wanted is None else wanted
    if method == "sweep":
        return SweepBound(belief, length, pairs=pairs)
    return QuiltBound(belief, length, method)


def common_length(members: Sequence[Belief], length: Any) -> int:
    """Return the number of nodes: given, or that of beliefs about fixed rows.

    Of several independent subjects the longest decides what quilts need: cutting a series shortens
    nearby sets and removes nodes (`docs/theory/influence-curve.md`).
    """
    return max(parse_lengths(members, length))


def parse_lengths(members: Sequence[Belief], length: Any) -> Counter[int]:
    """Return the lengths of the subjects, and how many have each; a Counter says so itself.

    Raises:
        InvalidInputError: for missing or bad lengths.
    """
    own = next((belief.length for belief in members if belief.length is not None), None)
    if length is None:
        if own is None:
            raise InvalidInputError(
                "length is missing; give the number of time points (a chain fits any length)."
            )
        return Counter([own])
    several = isinstance(length, (list, tuple, set, frozenset, np.ndarray))
    counted = length if isinstance(length, Counter) else None
    given = listed(length, "length") if several else [length] if counted is None else list(counted)
    read = Counter(integer(n, "length", 1, LONGEST) for n in given)
    for n in counted or ():
        read[n] = integer(length[n], "The number of subjects", 1)
    if not read:
        raise InvalidInputError("The list of lengths is empty; give at least one.")
    longest = max(read)
    if own is not None and longest != own:
        raise InvalidInputError(
            f"length is {longest}, but the belief is about {own} rows; leave length out (None)."
        )
    return read


def parse_method(method: Any) -> InfluenceMethod | None:
    """Return a known method, or None for the best one per belief."""
    if method is None or (isinstance(method, str) and method in METHODS):
        return cast("InfluenceMethod | None", method)
    if isinstance(method, str) and method == "optimal-scale":
        raise UnsupportedError(
            f"{argument('method', 'optimal-scale')} is a calibration of one query and has no "
            "quilts to account "
            f"with; use {argument('method', 'exact')} here."
        )
    raise InvalidInputError(
        f"method is {shortened(method)}; choose one of {', '.join(METHODS)}, or None."
    )


def parse_noise(noise: Any, delta: Any) -> Fraction:
    """Return δ of Gaussian noise; 0 stands for geometric noise, which has none.

    Raises:
        InvalidInputError: for another noise, and for a δ that does not go with it.
    """
    if choice(noise, NOISES, "noise") == "gaussian":
        return proper_fraction(delta, "delta")
    if delta != 0 or isinstance(delta, bool):
        raise InvalidInputError(
            f"delta={shortened(delta)} goes with noise='gaussian'; geometric noise keeps a pure "
            "epsilon."
        )
    return Fraction(0)


def refuse_entry(method: Any) -> None:
    """Refuse the baseline "entry" where levels are told from noise, not noise from levels.

    Raises:
        InvalidInputError: for "entry".
    """
    if isinstance(method, str) and method == "entry":
        raise InvalidInputError(
            f"{argument('method', 'entry')} treats time points as independent, so its levels "
            "would be wrong under "
            "the beliefs given; leave method out."
        )


def check_states(query: Query | None, members: Sequence[Belief]) -> Query | None:
    """Refuse a query that cannot be asked about the states of a belief.

    Returns the query as it is asked: sums and means between the bounds of the states.

    Raises:
        InvalidInputError: naming the state.
    """
    if query is None or not hasattr(query, "check") or query.kind == "custom":
        return query
    for belief in members:
        if belief.states is not None:
            query.check(belief.states)
            query = query.narrowed(belief.states) if hasattr(query, "narrowed") else query
    return query


def answer_unit(query: Query | None, lengths: Counter[int]) -> Fraction:
    """Return what one integer of the query is worth in the answer, pooled over all subjects."""
    return Fraction(1) if query is None else query.grid(points_asked(query, lengths))[1]


def points_asked(query: Query, lengths: Counter[int]) -> int:
    """Return how many time points a query is about, over subjects of these lengths."""
    return sum(many * query.points(length) for length, many in lengths.items())


def default_method(belief: Belief) -> InfluenceMethod:
    """Return the sharpest method that a belief allows: the sweep for chains and trees."""
    return "sweep" if can_be_swept(belief) else default_quilts(belief)


def as_problem(
    query: Query | None,
    length: int,
    secrets: Any,
    episode: Any,
    pairs: SecretPairs | None = None,
) -> CalibrationProblem:
    """Return what is asked about a series of this length.

    Raises:
        InvalidInputError: for a query, secrets or an episode that make no sense.
    """
    nodes = read_secrets(secrets, length)
    stretch = integer(episode, "episode", 1)
    return CalibrationProblem(query, length, nodes, min(stretch, len(nodes)), pairs)
