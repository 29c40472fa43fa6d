"""Checking a belief against a public sample: does it fit, and what would a release leak if not?

The sample is scored beside what `candidates` fits on it, each half by the other. A belief fits if
it scores about as well as the best of them, and if no trait contradicts it: being the best of those
that were tried is not enough. A trait contradicts where the difference matters for a release and is
beyond what chance explains (`_SURE` standard errors).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quiltwork.audit.misspecification import Misspecification, misspecification
from quiltwork.beliefs import (
    Belief,
    Candidate,
    ChainBox,
    CyclicChain,
    HiddenChain,
    as_beliefs,
    candidates,
)
from quiltwork.beliefs.documents import labels_to_json
from quiltwork.beliefs.goodness_of_fit import (
    Comparison,
    Sample,
    Stays,
    compare,
    read_sample,
    refuse_incomparable,
)
from quiltwork.beliefs.grids import Grid, duration
from quiltwork.beliefs.matrices import FloatArray
from quiltwork.exact import Number, float_up, integer, privacy_level
from quiltwork.influence.calibration import calibrate
from quiltwork.queries import histogram
from quiltwork.results import ResultBase

_NATS, _LEAST = 0.01, 3.0  # as `candidates` judges
_DAY = 86_400
_LONGEST = 10**6  # an exact level keeps a number for every time point
_FEW = 10
_MOST_WORDS = 3
_SURE = 4.0  # standard errors: a few dozen traits of a true belief are compared
_TAIL = 0.1  # nine stays of ten are at most `Stays.most`
_LOUD = {"stays": math.log(1.25), "memory": 0.1, "hours": 0.1, "outside": 0.01}
_NAMES = {
    "order 1": "a chain that remembers one state",
    "order 2": "a chain that remembers two states",
    "durations": "a chain that knows how long a state has lasted",
    "time of day": "a chain with a matrix for every time of day",
}


@dataclass(frozen=True)
class BeliefCheck(ResultBase):
    """How beliefs fit a sample, and what a histogram calibrated with them would leak.

    Attributes:
        members: every belief beside the sample.
        candidates: what was fitted on the sample, the likeliest first.
        misspecification: the leakage of the histogram under the likeliest; None without noise.
        sample: the sample.
        length: of the series that would be released.
        epsilon: the level that it would be made for.
        scale: of the noise that it would have.
        fitted: whether a belief is noticed to be fitted on this very sample.
        held_out: whether all scores are of steps that the scoring belief was not fitted on.
    """

    schema = ("belief-check", 1)

    members: tuple[Comparison, ...]
    candidates: tuple[Candidate, ...]
    misspecification: Misspecification | None
    sample: Sample
    length: int
    epsilon: Number
    scale: float
    fitted: bool
    held_out: bool

    @property
    def best(self) -> Comparison:
        """The belief given under which the sample is likeliest."""
        return max(self.members, key=lambda one: one.per_step)

    @property
    def score_title(self) -> str:
        """What the likelihoods are of."""
        if self.held_out:
            return "Likelihood of held-out steps"
        return "Likelihood of steps, held out for the fitted ones alone"

    @property
    def likely(self) -> bool:
        """Whether the sample is about as likely as under the likeliest that was fitted on it."""
        room = max(_LEAST / self.sample.steps, _NATS)
        return self.best.per_step >= max(one.per_step for one in self.candidates) - room

    @property
    def fits(self) -> bool:
        """Whether the sample is likely, as far as steps were held out, and nothing contradicts."""
        return (self.likely or not self.held_out) and not self.contradictions()

    @property
    def level(self) -> float:
        """What the release would tell: exactly where that is known, else at most."""
        if self.misspecification is None:
            return math.inf
        return (
            self.misspecification.bound
            if self.misspecification.exact is None
            else self.misspecification.exact
        )

    def contradictions(self) -> list[str]:
        """Return what differs most between the best belief and the sample, loudest first."""
        found = sorted(_contradictions(self.best, self.sample), key=lambda one: -one[0])
        return [words for loud, words in found if loud > 1]

    def verdict(self) -> str:
        """Say in one sentence whether it fits and what a release would tell."""
        told = f"a release made for {float(self.epsilon):g} "
        name = _NAMES.get(self.candidates[0].name, self.candidates[0].name)
        likeliest = f"if what fits the sample best were true ({name})"
        if self.misspecification is None:
            told += "would have no noise at all, since the belief leaves nothing open"
        elif self.misspecification.keeps:
            told += f"would keep that {likeliest}"
        else:
            told += f"would tell up to {self.level:.3g} {likeliest}"
        if self.fits:
            own = " the sample that it was fitted on" if self.fitted else ""
            return f"It fits{own}; {told}."
        loud = [*self.contradictions(), "the order of states is likelier under another belief"]
        yet = "yet " if self.misspecification is not None and self.misspecification.keeps else ""
        beside = ", though none that was tried is much likelier" if self.likely else ""
        return f"It does not fit{beside}: {loud[0]}; {yet}{told}."

    def explain(self) -> str:
        """Say the verdict, what else differs and what would be told."""
        others = self.contradictions()[not self.fits :]
        lines = [self.verdict(), *(f"Differs: {words}." for words in others[:_MOST_WORDS])]
        if self.fitted:
            lines.append(
                "It was fitted on this sample, so stays, memory and hours agree more than with "
                "other data. "
                + (
                    "Its likelihood is that of its kind, each half scored by the other. "
                    if self.held_out
                    else "Its likelihood was not held out and is not judged. "
                )
                + "Check it on a sample that it was not fitted on."
            )
        if self.misspecification is not None:
            lines += self.misspecification.explain().splitlines()
        return "\n".join(lines)

    def body(self) -> dict[str, Any]:
        """Return everything as JSON values; what is not finite is null."""
        told = self.misspecification
        return {
            "verdict": self.verdict(),
            "fits": self.fits,
            "contradictions": self.contradictions(),
            "states": labels_to_json(self.sample.states),
            "steps": self.sample.steps,
            "fitted_on_sample": self.fitted,
            "held_out": self.held_out,
            "beliefs": [_member_body(one) for one in self.members],
            "candidates": [
                {"name": one.name, "per_step": _finite(one.per_step), "plausible": one.plausible}
                for one in self.candidates
            ],
            "release": {
                "query": "histogram",
                "length": self.length,
                "scale": self.scale,
                "promised": float_up(privacy_level(self.epsilon, "epsilon")),
                "bound": None if told is None else _finite(told.bound),
                "exact": None if told is None or told.exact is None else _finite(told.exact),
                "node": None if told is None else told.node,
            },
        }


def check_belief(
    beliefs: Belief | Sequence[Belief],
    sequences: Any,
    *,
    length: int | None = None,
    epsilon: Number = 1,
    grid: Grid | None = None,
) -> BeliefCheck:
    """Hold beliefs against public sequences, best ones that they were not fitted on.

    A belief that was fitted on these sequences is scored by its kind: each half by what is fitted
    on the other.

    Args:
        beliefs: one belief about sequences of states, or a list.
        sequences: one sequence or many, as in `MarkovChain.fit`; not the data to be released.
        length: of the series to be released; a day if not given and the step is known, else the
            longest sequence.
        epsilon: the level of the histogram whose leak is told.
        grid: what a time point and a state are; `read_series` notes it with what it reads.

    Raises:
        InvalidInputError: naming the sequence and position that cannot be read.
        UnsupportedError: for beliefs that are not about sequences of states.

    >>> from quiltwork.beliefs import MarkovChain
    >>> truth = MarkovChain([[0.95, 0.05], [0.1, 0.9]], states=["rest", "walk"])
    >>> said = MarkovChain([[0.8, 0.2], [0.4, 0.6]], states=["rest", "walk"])
    >>> found = check_belief(said, truth.sample(5000, seed=1), length=100)
    >>> found.fits, found.contradictions()[0]
    (False, "stays in 'rest' last 21.4 steps on average, it says 5")
    """
    members = as_beliefs(beliefs)
    level = privacy_level(epsilon, "epsilon")
    for one in members:
        refuse_incomparable(one)
    sample = read_sample(sequences, members[0], grid)
    points = _length(sample) if length is None else integer(length, "length", 1, _LONGEST)
    compared = tuple(compare(one, sample) for one in members)
    tried = tuple(candidates(sequences, states=sample.states, grid=grid))
    made = calibrate(members, points, level, query=histogram())
    told = misspecification(made, tried[0].belief) if made.exact_scale > 0 else None
    fitted = [one.fitted_on(sequences) for one in members]
    scores = [
        _held_out(one.belief, tried) if own else one.per_step
        for one, own in zip(compared, fitted, strict=True)
    ]
    compared = tuple(
        one if score is None else replace(one, per_step=score)
        for one, score in zip(compared, scores, strict=True)
    )
    return BeliefCheck(
        members=compared,
        candidates=tried,
        misspecification=told,
        sample=sample,
        length=points,
        epsilon=epsilon,
        scale=made.scale,
        fitted=any(fitted),
        held_out=None not in scores,
    )


def _held_out(belief: Belief, tried: Sequence[Candidate]) -> float | None:
    """Return the held-out score of the belief of the same kind that was tried; None if none was."""
    kinds = {_kind(one.belief): one.per_step for one in tried}
    return kinds.get(_kind(belief))


def _kind(belief: Belief) -> tuple[object, ...]:
    """Return what two fits on the same data have in common if they are of one kind."""
    memory = belief.inner.size if isinstance(belief, HiddenChain) else 0
    period = belief.period if isinstance(belief, CyclicChain) else 0
    return type(belief), memory, period


def _length(sample: Sample) -> int:
    if sample.step is not None and sample.step < _DAY:
        return _DAY // sample.step
    return min(_LONGEST, max(map(len, sample.paths)))


def _contradictions(one: Comparison, sample: Sample) -> Iterator[tuple[float, str]]:
    """Yield how loud each trait contradicts, in units of what is worth a word, and the words."""
    if one.outside > 0 and not isinstance(one.belief, ChainBox):
        yield math.inf, f"it rules out {_percent(one.outside)} of the sample's steps"
    elif one.outside > 0:
        words = f"{_percent(one.outside)} of the sample's steps lie outside the box"
        yield one.outside / _LOUD["outside"], words
    yield from _stay_words(one, sample)
    gaps = np.nan_to_num(np.abs(one.autocorrelation - one.believed))
    gaps[gaps <= _SURE * _autocorrelation_error(one, sample)] = 0.0
    row, state = divmod(int(gaps.argmax()), gaps.shape[1])
    yield (
        float(gaps[row, state]) / _LOUD["memory"],
        f"the autocorrelation of {sample.states[state]!r} after {_steps(one.lags[row])} is "
        f"{one.autocorrelation[row, state]:.2f}, it says {one.believed[row, state]:.2f}",
    )
    if one.hours is not None:
        hour, state = one.hours.worst()
        seen, said = one.hours.sample[hour, state], one.hours.belief[hour, state]
        noise = 3 * math.sqrt(max(seen * (1 - seen), 0.01) / max(1, one.hours.days[hour]))
        if abs(seen - said) > noise:
            yield (
                abs(seen - said) / _LOUD["hours"],
                f"from {hour}:00 to {hour + 1}:00 {sample.states[state]!r} takes "
                f"{_percent(seen)} of the time, it says {_percent(said)}",
            )


def _autocorrelation_error(one: Comparison, sample: Sample) -> FloatArray:
    """Return the standard errors of the sample's autocorrelations, (lags, k); Bartlett's formula.

    Correlations are taken to fade as they do from one step to the next, under the sample or the
    belief, whichever is slower.
    """
    first = np.nan_to_num(np.maximum(np.abs(one.autocorrelation[0]), np.abs(one.believed[0])))
    first = np.minimum(first, 0.9999) ** 2
    pairs = np.array([sum(max(len(p) - lag, 0) for p in sample.paths) for lag in one.lags])
    return np.asarray(np.sqrt((1 + first) / (1 - first) / np.maximum(pairs, 1)[:, np.newaxis]))


def _stay_words(one: Comparison, sample: Sample) -> Iterator[tuple[float, str]]:
    pairs = zip(sample.states, one.stays, one.believed_stays, strict=True)
    for state, seen, said in pairs:
        if seen is None or said is None or seen.ended < _FEW:
            continue
        name = f"stays in {state!r} last"
        if abs(seen.mean - said.mean) > _SURE * _spread(seen) / math.sqrt(seen.ended):
            loud = _apart(seen.mean, said.mean) / _LOUD["stays"]
            yield loud, f"{name} {_points(seen.mean, sample)} on average, it says {said.mean:.3g}"
        if seen.most is not None and said.most is not None:
            beyond = seen.longer[int(said.most)] if said.most < len(seen.longer) else 0.0
            if abs(beyond - _TAIL) > _SURE * math.sqrt(_TAIL * (1 - _TAIL) / seen.ended):
                yield (
                    0.9 * _apart(seen.most, said.most) / _LOUD["stays"],
                    f"{name} up to {_points(seen.most, sample)} in nine cases of ten, it says "
                    f"{said.most:.3g}",
                )


def _spread(stay: Stays) -> float:
    """Return the standard deviation of a stay, at least that of a constant rate of ending."""
    square = sum((2 * n + 1) * share for n, share in enumerate(stay.longer))
    geometric = stay.mean * (stay.mean - 1)
    return math.sqrt(max(square - stay.mean**2, geometric, 0.0))


def _apart(one: float, other: float) -> float:
    """How far apart two lengths are as ratios; one time point more or less is nothing."""
    return math.log((max(one, other) + 1) / (min(one, other) + 1))


def _points(number: float, sample: Sample) -> str:
    unit = "steps" if sample.step is None else f"steps of {duration(sample.step)}"
    return f"{number:.3g} {unit}"


def _steps(number: int) -> str:
    return "one step" if number == 1 else f"{number} steps"


def traits(check: BeliefCheck) -> Iterator[str]:
    """Say how much lies outside of the best belief, and which hour differs most."""
    one, states = check.best, check.sample.states
    where = "outside the box" if isinstance(one.belief, ChainBox) else "ruled out"
    yield f"Steps {where}: {_percent(one.outside)}."
    if one.hours is not None:
        hour, state = one.hours.worst()
        yield (
            f"Time of day: the largest difference is that of {states[state]!r} from {hour}:00 to "
            f"{hour + 1}:00, {_percent(one.hours.sample[hour, state])} of the time against "
            f"{_percent(one.hours.belief[hour, state])}."
        )


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"


def _member_body(one: Comparison) -> dict[str, Any]:
    return {
        "belief": repr(one.belief),
        "per_step": _finite(one.per_step),
        "outside": one.outside,
        "lags": list(one.lags),
        "autocorrelation": _listed(one.autocorrelation),
        "believed_autocorrelation": _listed(one.believed),
        "stays": [_stay_body(stay) for stay in one.stays],
        "believed_stays": [_stay_body(stay) for stay in one.believed_stays],
        "hours": None
        if one.hours is None
        else {"sample": _listed(one.hours.sample), "belief": _listed(one.hours.belief)},
    }


def _stay_body(stay: Stays | None) -> dict[str, Any] | None:
    if stay is None:
        return None
    most = None if stay.most is None else _finite(stay.most)
    return {"mean": _finite(stay.mean), "most": most, "ended": stay.ended}


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _listed(numbers: Any) -> list[list[float | None]]:
    return [[_finite(number) for number in row] for row in numbers.tolist()]
