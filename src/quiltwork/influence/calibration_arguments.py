"""Validation of the arguments of calibration: lengths, methods, noise, secrets; one bound per
belief.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import numpy as np

from quiltwork.arguments import choice, listed
from quiltwork.beliefs import Belief, Gaussian, as_beliefs
from quiltwork.beliefs.secrets import SecretPairs, parse_secrets
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
"""With longer series, sensitivities and sums of lengths would not fit into 64-bit integers."""


def bounds_for(
    beliefs: Any, length: Any, method: Any, pairs: SecretPairs | None = None
) -> tuple[BeliefBound, ...]:
    """Return one bound per belief, all for the same length.

    Only sweeps use `pairs`; quilts protect all pairs, hence these too.

    Raises:
        InvalidInputError: for invalid beliefs, lengths and methods.
        UnsupportedError: for a method that does not support a belief.
    """
    members = as_beliefs(beliefs)
    points = common_length(members, length)
    parsed_method = parse_method(method)
    if parsed_method == "sweep":
        for belief in members:
            if not isinstance(belief, Gaussian) and not can_be_swept(belief):
                raise UnsupportedError(
                    "The sweep needs a chain or a network that is a tree (no cycle, no node with "
                    f"two parents); this {type(belief).__name__} is neither. Leave method out."
                )
    return tuple(_bound_of(belief, points, parsed_method, pairs) for belief in members)


def _bound_of(
    belief: Belief, length: int, chosen_method: InfluenceMethod | None, pairs: SecretPairs | None
) -> BeliefBound:
    """The bound of one belief by a method, or by its default method."""
    if isinstance(belief, Gaussian):
        if chosen_method is not None:
            raise UnsupportedError(
                f"{argument('method', chosen_method)} is about states; Gaussian beliefs are about "
                "numbers and have a method of their own. Leave method out."
            )
        return GaussianBound(belief, length)
    method = default_method(belief) if chosen_method is None else chosen_method
    if method == "sweep":
        return SweepBound(belief, length, pairs=pairs)
    return QuiltBound(belief, length, method)


def common_length(members: Sequence[Belief], length: Any) -> int:
    """Return the number of nodes: as passed, or that of beliefs about fixed rows.

    Of several independent subjects the longest determines the noise by quilts: a shorter series has
    smaller nearby sets and fewer nodes (`docs/theory/influence-curve.md`).
    """
    return max(parse_lengths(members, length))


def parse_lengths(members: Sequence[Belief], length: Any) -> Counter[int]:
    """Return the lengths of the subjects and how many subjects have each.

    Raises:
        InvalidInputError: for missing or invalid lengths.
    """
    fixed = next((belief.length for belief in members if belief.length is not None), None)
    if length is None:
        if fixed is None:
            raise InvalidInputError(
                "length is missing: pass the number of time points (a chain has any length)."
            )
        return Counter([fixed])
    several = isinstance(length, (list, tuple, set, frozenset, np.ndarray))
    counter = length if isinstance(length, Counter) else None
    lengths = (
        listed(length, "length") if several else [length] if counter is None else list(counter)
    )
    counts = Counter(integer(n, "length", 1, LONGEST) for n in lengths)
    for n in counter or ():
        counts[n] = integer(length[n], "The number of subjects", 1)
    if not counts:
        raise InvalidInputError("The list of lengths is empty; pass at least one length.")
    longest = max(counts)
    if fixed is not None and longest != fixed:
        raise InvalidInputError(
            f"length is {longest}, but the belief is about {fixed} rows; leave length out (None)."
        )
    return counts


def parse_method(method: Any) -> InfluenceMethod | None:
    """Return a known method, or None for the default method of each belief."""
    if method is None or (isinstance(method, str) and method in METHODS):
        return cast("InfluenceMethod | None", method)
    if isinstance(method, str) and method == "optimal-scale":
        raise UnsupportedError(
            f"{argument('method', 'optimal-scale')} calibrates a single query and does not "
            f"compose; use {argument('method', 'exact')} here."
        )
    raise InvalidInputError(
        f"method is {shortened(method)}; choose one of {', '.join(METHODS)}, or None."
    )


def parse_noise(noise: Any, delta: Any) -> Fraction:
    """Return δ of Gaussian noise; 0 for geometric noise, which has none.

    Raises:
        InvalidInputError: for unknown noise, and for a δ that does not fit the noise.
    """
    if choice(noise, NOISES, "noise") == "gaussian":
        return proper_fraction(delta, "delta")
    if not isinstance(delta, (int, float, Fraction, Decimal)) or isinstance(delta, bool) or delta:
        raise InvalidInputError(
            f"delta={shortened(delta)} needs noise='gaussian'; geometric noise has a pure epsilon. "
            "Leave delta out, or use Gaussian noise."
        )
    return Fraction(0)


def refuse_entry(method: Any) -> None:
    """Refuse the baseline "entry" where a level is derived from noise.

    Raises:
        InvalidInputError: for "entry".
    """
    if isinstance(method, str) and method == "entry":
        raise InvalidInputError(
            f"{argument('method', 'entry')} treats time points as independent, so its levels do "
            "not hold under the given beliefs. Leave method out."
        )


def check_states(query: Query | None, members: Sequence[Belief]) -> Query | None:
    """Check that a query can be asked about the states of each belief.

    Returns the query with sums and means clipped to the range of the states.

    Raises:
        InvalidInputError: naming the state.
    """
    # a custom query checks its data itself
    if query is None or not hasattr(query, "check") or query.kind == "custom":
        return query
    for belief in members:
        if belief.states is not None:
            query.check(belief.states)
            query = query.narrowed(belief.states) if hasattr(query, "narrowed") else query
    return query


def answer_unit(query: Query | None, lengths: Counter[int]) -> Fraction:
    """Return the value of one integer of the query in the answer, pooled over all subjects."""
    return Fraction(1) if query is None else query.grid(points_asked(query, lengths))[1]


def points_asked(query: Query, lengths: Counter[int]) -> int:
    """Return the number of time points that a query covers, over subjects of these lengths."""
    return sum(subjects * query.points(length) for length, subjects in lengths.items())


def default_method(belief: Belief) -> InfluenceMethod:
    """Return the sharpest method for a belief: the sweep for chains and trees."""
    return "sweep" if can_be_swept(belief) else default_quilts(belief)


def as_problem(
    query: Query | None,
    length: int,
    secrets: Any,
    episode: Any,
    pairs: SecretPairs | None = None,
) -> CalibrationProblem:
    """Return the calibration problem for a series of this length.

    Raises:
        InvalidInputError: for an invalid query, secrets or episode.
    """
    nodes = parse_secrets(secrets, length)
    nodes_per_secret = integer(episode, "episode", 1)
    return CalibrationProblem(query, length, nodes, min(nodes_per_secret, len(nodes)), pairs)
