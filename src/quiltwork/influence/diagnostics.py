"""Diagnostics of beliefs: does a belief fit public data, and what makes a fit fragile?

`check_belief` scores beliefs on a public sample beside the candidates fitted to it, each half by
the other. A belief fits if its likelihood is close to that of the best candidate and no trait
contradicts it: being the best of those that were tried is not enough. A trait contradicts if the
difference matters for a release and exceeds chance by `_SURE` standard errors. `fit_warnings` lists
what makes a fit fragile, from the data of the fit alone, and `noise_by_distance` shows the price of
a wider set of beliefs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from quiltwork.audit.misspecification import Misspecification, misspecification
from quiltwork.beliefs import (
    Belief,
    Candidate,
    ChainBox,
    CyclicChain,
    HiddenChain,
    Label,
    MarkovChain,
    as_beliefs,
    candidates,
)
from quiltwork.beliefs.alternatives import evaluate_candidates, nats_allowed
from quiltwork.beliefs.documents import labels_to_json
from quiltwork.beliefs.elicited import around
from quiltwork.beliefs.gaps import recorded_runs
from quiltwork.beliefs.goodness_of_fit import (
    Comparison,
    Sample,
    Stays,
    compare,
    parse_sample,
    require_comparable,
)
from quiltwork.beliefs.grids import Grid, duration
from quiltwork.beliefs.matrices import FloatArray
from quiltwork.beliefs.origins import ignore_clock_changes, split_at_clock_changes
from quiltwork.beliefs.sequences import split_sequences
from quiltwork.beliefs.transition_counts import TransitionCounts, count_transitions, smoothed_rows
from quiltwork.errors import InvalidInputError, QuiltworkError
from quiltwork.exact import (
    Number,
    float_up,
    format_number,
    integer,
    percent,
    privacy_level,
    to_fraction,
)
from quiltwork.influence.calibration import Calibration, calibrate
from quiltwork.queries import histogram
from quiltwork.results import ResultBase

_NATS, _LEAST = 0.01, 3.0  # the tolerances of `candidates`
_DAY = 86_400
_LONGEST = 10**6  # an exact level stores one number per time point
_FEW = 10
_MOST_WORDS = 3
_SURE = 4.0  # standard errors: a few dozen traits of a true belief are compared
_TAIL = 0.1  # nine stays of ten are at most `Stays.most`
_NOTABLE = {"stays": math.log(1.25), "memory": 0.1, "hours": 0.1, "outside": 0.01}
_NAMES = {
    "order 1": "a chain that remembers one state",
    "order 2": "a chain that remembers two states",
    "durations": "a chain whose moves depend on how long a state has lasted",
    "time of day": "a chain with a matrix for every time of day",
}


@dataclass(frozen=True)
class BeliefCheck(ResultBase):
    """The fit of beliefs to a sample, and the leakage of a histogram calibrated with them.

    Attributes:
        members: the comparison of each belief with the sample.
        candidates: the beliefs fitted on the sample, the likeliest first.
        misspecification: the leakage of the histogram under the likeliest; None without noise.
        sample: the sample.
        length: of the series to be released.
        epsilon: the level of the release.
        scale: the noise of the release.
        fitted: whether a belief is known to be fitted on this very sample.
        held_out: whether every score is of steps on which the scored belief was not fitted.
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
        """The belief under which the sample is likeliest."""
        return max(self.members, key=lambda member: member.per_step)

    @property
    def score_title(self) -> str:
        """The heading of the likelihoods."""
        if self.held_out:
            return "Likelihood of held-out steps"
        return "Likelihood of steps, held out for the fitted ones alone"

    @property
    def likely(self) -> bool:
        """Whether the sample is about as likely as under the likeliest candidate."""
        tolerance = max(_LEAST / self.sample.steps, _NATS)
        return (
            self.best.per_step
            >= max(candidate.per_step for candidate in self.candidates) - tolerance
        )

    @property
    def fits(self) -> bool:
        """Whether the held-out likelihood is close to the best, and no trait contradicts the
        belief.
        """
        return (self.likely or not self.held_out) and not self.contradictions()

    @property
    def level(self) -> float:
        """The leakage of the release: exact where that is known, else an upper bound."""
        if self.misspecification is None:
            return math.inf
        return (
            self.misspecification.bound
            if self.misspecification.exact is None
            else self.misspecification.exact
        )

    def contradictions(self) -> list[str]:
        """Return the traits of the sample that contradict the best belief, the strongest first."""
        traits = sorted(_contradictions(self.best, self.sample), key=lambda trait: -trait[0])
        return [text for strength, text in traits if strength > 1]

    def verdict(self) -> str:
        """Say in one sentence whether the belief fits, and what a release would leak."""
        release = f"a release made for {float(self.epsilon):g} "
        name = _NAMES.get(self.candidates[0].name, self.candidates[0].name)
        likeliest = f"if what fits the sample best were true ({name})"
        if self.misspecification is None:
            release += "would have no noise at all, since nothing is secret under the belief"
        elif self.misspecification.keeps:
            release += f"would keep that {likeliest}"
        else:
            release += f"would leak up to {format_number(self.level, 3)} {likeliest}"
        if self.fits:
            own = " the sample that it was fitted on" if self.fitted else ""
            return f"It fits{own}; {release}."
        reasons = [*self.contradictions(), "the order of states is likelier under another belief"]
        yet = "yet " if self.misspecification is not None and self.misspecification.keeps else ""
        but = ", though none that was tried is much likelier" if self.likely else ""
        return f"It does not fit{but}: {reasons[0]}; {yet}{release}."

    def explain(self) -> str:
        """Return the verdict, further differences, and the leakage of a release."""
        further = self.contradictions()[not self.fits :]
        lines = [self.verdict(), *(f"Differs: {trait}." for trait in further[:_MOST_WORDS])]
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
        """Return everything as JSON values; a number that is not finite is null."""
        leak = self.misspecification
        return {
            "verdict": self.verdict(),
            "fits": self.fits,
            "contradictions": self.contradictions(),
            "states": labels_to_json(self.sample.states),
            "steps": self.sample.steps,
            "fitted_on_sample": self.fitted,
            "held_out": self.held_out,
            "beliefs": [_member_body(entry) for entry in self.members],
            "candidates": [
                {
                    "name": entry.name,
                    "per_step": _finite(entry.per_step),
                    "plausible": entry.plausible,
                }
                for entry in self.candidates
            ],
            "release": {
                "query": "histogram",
                "length": self.length,
                "scale": self.scale,
                "promised": float_up(privacy_level(self.epsilon, "epsilon")),
                "bound": None if leak is None else _finite(leak.bound),
                "exact": None if leak is None or leak.exact is None else _finite(leak.exact),
                "node": None if leak is None else leak.node,
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
    """Compare beliefs with public sequences, and with the best beliefs fitted to these.

    A belief that was fitted on these sequences is scored as its kind of belief: each half of the
    data by what is fitted on the other.

    Args:
        beliefs: one belief about sequences of states, or a list.
        sequences: one sequence or many, as in `MarkovChain.fit`; not the data to be released.
        length: of the series to be released; by default a day if the time step is known, else the
            length of the longest sequence.
        epsilon: the level of the histogram whose leakage is computed.
        grid: the time step and the states; `read_series` returns it with the data.

    Raises:
        InvalidInputError: naming the sequence and position that cannot be read.
        UnsupportedError: for beliefs that are not about sequences of states.

    >>> from quiltwork.beliefs import MarkovChain
    >>> truth = MarkovChain([[0.95, 0.05], [0.1, 0.9]], states=["rest", "walk"])
    >>> belief = MarkovChain([[0.8, 0.2], [0.4, 0.6]], states=["rest", "walk"])
    >>> check = check_belief(belief, truth.sample(5000, seed=1), length=100)
    >>> check.fits, check.contradictions()[0]
    (False, "stays in 'rest' last 21.4 steps on average, the belief says 5")
    """
    members = as_beliefs(beliefs)
    level = privacy_level(epsilon, "epsilon")
    for belief in members:
        require_comparable(belief)
    sample = parse_sample(sequences, members[0], grid)
    points = _length(sample) if length is None else integer(length, "length", 1, _LONGEST)
    comparisons = tuple(compare(belief, sample) for belief in members)
    fits = tuple(candidates(sequences, states=sample.states, grid=grid))
    calibration = calibrate(members, points, level, query=histogram())
    leak = misspecification(calibration, fits[0].belief) if calibration.exact_scale > 0 else None
    fitted = [belief.fitted_on(sequences) for belief in members]
    scores = [
        _held_out(belief.belief, fits) if is_fitted else belief.per_step
        for belief, is_fitted in zip(comparisons, fitted, strict=True)
    ]
    comparisons = tuple(
        belief if score is None else replace(belief, per_step=score)
        for belief, score in zip(comparisons, scores, strict=True)
    )
    return BeliefCheck(
        members=comparisons,
        candidates=fits,
        misspecification=leak,
        sample=sample,
        length=points,
        epsilon=epsilon,
        scale=calibration.scale,
        fitted=any(fitted),
        held_out=None not in scores,
    )


def _held_out(belief: Belief, fits: Sequence[Candidate]) -> float | None:
    """Return the held-out score of the fitted candidate of the same kind; None if there is none."""
    own = _of_kind(_kind(belief), fits)
    return None if own is None else own.per_step


def _of_kind(kind: tuple[object, ...], fits: Sequence[Candidate]) -> Candidate | None:
    """Return the candidate of this kind of belief; None if there is none."""
    return next((candidate for candidate in fits if _kind(candidate.belief) == kind), None)


_CHAIN = MarkovChain, 0, 0
"""The kind of a homogeneous chain (`_kind`)."""


def _kind(belief: Belief) -> tuple[object, ...]:
    """Return the kind of a belief: two fits of one kind differ in their data alone."""
    memory = belief.inner.size if isinstance(belief, HiddenChain) else 0
    period = belief.period if isinstance(belief, CyclicChain) else 0
    return type(belief), memory, period


def _length(sample: Sample) -> int:
    """The length of the release: a day if the time step is known, else the longest sequence."""
    if sample.step is not None and sample.step < _DAY:
        return _DAY // sample.step
    return min(_LONGEST, max(map(len, sample.paths)))


def _contradictions(comparison: Comparison, sample: Sample) -> Iterator[tuple[float, str]]:
    """Yield each trait that differs: its strength, in units of a notable difference, and a
    sentence.
    """
    if comparison.outside > 0 and not isinstance(comparison.belief, ChainBox):
        share = percent(comparison.outside)
        yield math.inf, f"the belief rules out {share} of the sample's steps"
    elif comparison.outside > 0:
        text = f"{percent(comparison.outside)} of the sample's steps lie outside the box"
        yield comparison.outside / _NOTABLE["outside"], text
    yield from _stay_words(comparison, sample)
    gaps = np.nan_to_num(np.abs(comparison.autocorrelation - comparison.believed))
    gaps[gaps <= _SURE * _autocorrelation_error(comparison, sample)] = 0.0
    row, state = divmod(int(gaps.argmax()), gaps.shape[1])
    yield (
        float(gaps[row, state]) / _NOTABLE["memory"],
        f"the autocorrelation of {sample.states[state]!r} after {_steps(comparison.lags[row])} is "
        f"{comparison.autocorrelation[row, state]:.2f}, the belief says "
        f"{comparison.believed[row, state]:.2f}",
    )
    if comparison.hours is not None:
        hour, state = comparison.hours.worst()
        observed, believed = (
            comparison.hours.sample[hour, state],
            comparison.hours.belief[hour, state],
        )
        noise = 3 * math.sqrt(
            max(observed * (1 - observed), 0.01) / max(1, comparison.hours.days[hour])
        )
        if abs(observed - believed) > noise:
            yield (
                abs(observed - believed) / _NOTABLE["hours"],
                f"from {hour}:00 to {hour + 1}:00 {sample.states[state]!r} takes "
                f"{percent(observed)} of the time, the belief says {percent(believed)}",
            )


def _autocorrelation_error(comparison: Comparison, sample: Sample) -> FloatArray:
    """Return the standard errors of the sample's autocorrelations, (lags, k); Bartlett's formula.

    Correlations are assumed to fade as from one step to the next, under the sample or the belief,
    whichever fades more slowly.
    """
    fading = np.nan_to_num(
        np.maximum(np.abs(comparison.autocorrelation[0]), np.abs(comparison.believed[0]))
    )
    fading = np.minimum(fading, 0.9999) ** 2
    pairs = np.array([sum(max(len(p) - lag, 0) for p in sample.paths) for lag in comparison.lags])
    return np.asarray(np.sqrt((1 + fading) / (1 - fading) / np.maximum(pairs, 1)[:, np.newaxis]))


def _stay_words(comparison: Comparison, sample: Sample) -> Iterator[tuple[float, str]]:
    """Yield how the lengths of stays differ, with the strength of each difference."""
    pairs = zip(sample.states, comparison.stays, comparison.believed_stays, strict=True)
    for state, observed, believed in pairs:
        if observed is None or believed is None or observed.ended < _FEW:
            continue
        name = f"stays in {state!r} last"
        if abs(observed.mean - believed.mean) > _SURE * _spread(observed) / math.sqrt(
            observed.ended
        ):
            strength = _log_ratio(observed.mean, believed.mean) / _NOTABLE["stays"]
            yield (
                strength,
                f"{name} {_steps_of_time(observed.mean, sample)} on average, the belief says "
                f"{format_number(believed.mean, 3)}",
            )
        if observed.most is not None and believed.most is not None:
            beyond = (
                observed.longer[int(believed.most)] if believed.most < len(observed.longer) else 0.0
            )
            if abs(beyond - _TAIL) > _SURE * math.sqrt(_TAIL * (1 - _TAIL) / observed.ended):
                yield (
                    0.9 * _log_ratio(observed.most, believed.most) / _NOTABLE["stays"],
                    f"{name} up to {_steps_of_time(observed.most, sample)} in nine cases of ten, "
                    f"the belief says "
                    f"{format_number(believed.most, 3)}",
                )


def _spread(stay: Stays) -> float:
    """Return the standard deviation of a stay, at least that of a constant rate of ending."""
    square = sum((2 * length + 1) * beyond for length, beyond in enumerate(stay.longer))
    geometric = stay.mean * (stay.mean - 1)
    return math.sqrt(max(square - stay.mean**2, geometric, 0.0))


def _log_ratio(length: float, other: float) -> float:
    """The log-ratio of two lengths; one time point more or less counts as nothing."""
    return math.log((max(length, other) + 1) / (min(length, other) + 1))


def _steps_of_time(number: float, sample: Sample) -> str:
    """A number of time steps with its unit."""
    unit = "steps" if sample.step is None else f"steps of {duration(sample.step)}"
    return f"{format_number(number, 3)} {unit}"


def _steps(number: int) -> str:
    """ "one step" or "n steps"."""
    return "one step" if number == 1 else f"{number} steps"


def traits(check: BeliefCheck) -> Iterator[str]:
    """Yield the share of steps outside the best belief, and the hour that differs most."""
    comparison, states = check.best, check.sample.states
    where = "outside the box" if isinstance(comparison.belief, ChainBox) else "ruled out"
    yield f"Steps {where}: {percent(comparison.outside)}."
    if comparison.hours is not None:
        hour, state = comparison.hours.worst()
        yield (
            f"Time of day: the largest difference is that of {states[state]!r} from {hour}:00 to "
            f"{hour + 1}:00, {percent(comparison.hours.sample[hour, state])} of the time against "
            f"{percent(comparison.hours.belief[hour, state])}."
        )


def _member_body(comparison: Comparison) -> dict[str, Any]:
    """A comparison as JSON values."""
    return {
        "belief": comparison.belief.summary(),
        "per_step": _finite(comparison.per_step),
        "outside": comparison.outside,
        "lags": list(comparison.lags),
        "autocorrelation": _listed(comparison.autocorrelation),
        "believed_autocorrelation": _listed(comparison.believed),
        "stays": [_stay_body(stay) for stay in comparison.stays],
        "believed_stays": [_stay_body(stay) for stay in comparison.believed_stays],
        "hours": None
        if comparison.hours is None
        else {
            "sample": _listed(comparison.hours.sample),
            "belief": _listed(comparison.hours.belief),
        },
    }


def _stay_body(stay: Stays | None) -> dict[str, Any] | None:
    """A stay as JSON values."""
    if stay is None:
        return None
    most = None if stay.most is None else _finite(stay.most)
    return {"mean": _finite(stay.mean), "most": most, "ended": stay.ended}


def _finite(number: float) -> float | None:
    """A finite number, or None."""
    return float(number) if math.isfinite(number) else None


def _listed(numbers: Any) -> list[list[float | None]]:
    """A matrix as nested lists; entries that are not finite are None."""
    return [[_finite(number) for number in row] for row in numbers.tolist()]


_FEW_STEPS = 10
_MOST_STATES = 30
"""Calibrations for warnings are made for at most this many states."""
_TOO_FAR = 2
"""The factor by which smoothing may move the noise without a warning."""
_NEARLY_ALL = 0.9
_TOO_WIDE = 4
"""The factor by which the noise of a box may exceed that of one chain without a warning."""
_KEPT = 3
_OPTIONS = {
    "order 1": "--single",
    "order 2": "--order 2",
    "durations": "--durations",
    "time of day": "--period day",
    "time of week": "--period week",
}


def fit_price(beliefs: Belief | Sequence[Belief], length: int) -> Calibration:
    """Return the calibration of a histogram of `length` time points at ε = 1.

    >>> round(fit_price(MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 100).scale, 3)
    6.673
    """
    return calibrate(beliefs, length, 1, query=histogram())


def driving_states(calibration: Calibration) -> tuple[Label, Label] | None:
    """Return the two states that determine the noise: those best distinguished by the neighbours.

    They attain the bound of the sweep at the levels of the calibration, in an infinite series of
    the belief that decides. None for boxes and for matrices that change with the time of day.
    """
    if calibration.exact_scale == 0:
        return None
    bound = calibration.bounds[calibration.belief - 1]
    pair = bound.driving_states(calibration.problem, calibration.integer_scale)
    states = bound.belief.states
    return None if pair is None or states is None else (states[pair[0]], states[pair[1]])


def fit_warnings(
    beliefs: Belief | Sequence[Belief],
    sequences: Any,
    *,
    smoothing: Number = 0.5,
    period: Any = None,
) -> list[str]:
    """Return what contradicts a fit or makes it fragile, one sentence each; none if all is well.

    - fewer than ten steps per state;
    - one belief alone: held-out data rule it out by the rule of `candidates`;
    - several: memory that is likelier than all of them and too large to be calibrated;
    - times of a zone whose clocks change in between: no belief about the time of day was tried;
    - a first-order chain: the noise of a histogram moves by more than 2× when `smoothing` is
      divided or multiplied by ten (up to 30 states);
    - a box: it takes more than 4 times the noise of one chain (up to 30 states).

    Args:
        beliefs: what was fitted, one or a list.
        sequences: what it was fitted on.
        smoothing: with which it was fitted.
        period: as in `plausible`.

    >>> data = MarkovChain([[0.9, 0.1], [0.4, 0.6]]).sample(3000, seed=1)
    >>> fit_warnings(MarkovChain.fit(data), data)
    []
    """
    members = as_beliefs(beliefs)
    pieces = split_sequences(sequences)
    counted = count_transitions(recorded_runs(pieces), members[0].states, members[0].grid)
    length = max(map(len, pieces))
    options = {"states": members[0].states, "period": period}  # what is scored is always smoothed
    options["smoothing"] = max(to_fraction(smoothing, "smoothing"), Fraction(1, 2))
    fits, untried = evaluate_candidates(sequences, **options)
    sentences = _few_steps(counted)
    if len(members) == 1:
        sentences += _ruled_out(members[0], fits, int(counted.transitions.sum()))
    sentences += untried
    if period is None:
        sentences += _without_days(members, pieces, length)
    for belief in members:
        if isinstance(belief, MarkovChain) and belief.size <= _MOST_STATES:
            sentences += _smoothing_decides(belief, sequences, smoothing, length)
        if isinstance(belief, ChainBox) and belief.size <= _MOST_STATES:
            sentences += _wide(belief, counted, length)
    return sentences


def _without_days(members: Sequence[Belief], pieces: Sequence[Any], length: int) -> list[str]:
    """Say what it costs that no belief about the time of day could be fitted."""
    try:
        for piece in pieces:
            split_at_clock_changes(piece)
    except InvalidInputError:
        pass
    else:
        return []
    reason = "Clocks change in this series by no whole number of steps"
    start = f"{reason}, so beliefs about the time of day were left out; "
    remedy = "without the time zone (--timezone none) time points are those that clocks show."
    try:
        day = CyclicChain.fit(
            recorded_runs(map(ignore_clock_changes, pieces)), "day", 0.5, members[0].states
        )
    except QuiltworkError:
        return [start + remedy]
    noise_now = max(fit_price(belief, length).scale for belief in members)
    with_day = fit_price(day, length).scale
    return [
        f"{start}a histogram takes noise of {noise_now:.4g} under what was fitted, and noise of "
        f"{with_day:.4g} under a chain that follows the time of day: {remedy}"
    ]


def _few_steps(counted: TransitionCounts) -> list[str]:
    """Warn of fewer than ten steps per state."""
    size, steps = len(counted.states), int(counted.transitions.sum())
    if steps >= _FEW_STEPS * size:
        return []
    numbers = any(isinstance(state, float) for state in counted.states)
    remedy = "turn the numbers into a few bins (--edges)" if numbers else "merge states"
    return [
        f"{steps:,} steps between {size:,} states say little about each: fewer than ten per "
        f"state; {remedy}, or fit on more data."
    ]


def _ruled_out(belief: Belief, fits: list[Candidate], steps: int) -> list[str]:
    """Warn if held-out data contradict the belief, with the option that fits the better one."""
    own = _of_kind(_CHAIN if isinstance(belief, ChainBox) else _kind(belief), fits)
    rivals = [  # a box also holds chains whose matrices change in time
        candidate
        for candidate in fits
        if not (isinstance(belief, ChainBox) and isinstance(candidate.belief, CyclicChain))
    ]
    best = max(rivals, key=lambda candidate: candidate.per_step)
    if own is None or (best.per_step - own.per_step) * steps <= nats_allowed(steps):
        return []
    return [
        f"The data contradict {own.name}: steps that were held out are "
        f"{best.per_step - own.per_step:.3f} nats likelier each under {best.name}. The noise does "
        "not hold for an adversary with that belief; fit the list of plausible beliefs, or that "
        f"one ({_OPTIONS[best.name]})."
    ]


def _smoothing_decides(
    belief: MarkovChain, sequences: Any, smoothing: Number, length: int
) -> list[str]:
    """Warn if the noise depends on the amount of smoothing."""
    amount = to_fraction(smoothing, "smoothing")
    if amount == 0:
        return []
    amounts = amount / 10, amount, amount * 10
    scales = [fit_price(_again(belief, sequences, count), length).scale for count in amounts]
    if max(scales) <= _TOO_FAR * min(scales):
        return []
    added, noise = (_enumerated([float(number) for number in row]) for row in (amounts, scales))
    return [
        f"Smoothing decides the noise: {added} added to every count give scale {noise}. It stands "
        "for steps that are hardly seen; merge rare states, fit on more data, or choose it by "
        "what is known and not by the noise."
    ]


def _again(belief: MarkovChain, sequences: Any, smoothing: Fraction) -> MarkovChain:
    """The same fit with another amount of smoothing."""
    return MarkovChain.fit(sequences, smoothing, belief.states, belief.initial, belief.grid)


def _enumerated(numbers: list[float]) -> str:
    """Numbers as an English list: a, b and c."""
    shown = [f"{number:,.6g}" if number < 100 else f"{number:,.0f}" for number in numbers]
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def _wide(box: ChainBox, counted: TransitionCounts, length: int) -> list[str]:
    """Say what would help if a box needs far more noise than the chain in its middle."""
    scale, most = fit_price(box, length).scale, 2 * length
    plain = fit_price(MarkovChain(smoothed_rows(counted, 0.5)), length).scale
    if scale <= _TOO_WIDE * plain:
        return []
    comparison = f"{scale / plain:,.0f} times the noise of one chain"
    if scale >= _NEARLY_ALL * most:
        comparison = f"as much noise as hiding all {length:,} time points at once"
    rarest = int(np.argmin(counted.transitions.sum(axis=1)))
    count = int(counted.transitions[rarest].sum())
    richer_counts = 10 * counted.transitions
    richer = fit_price(ChainBox.from_counts(richer_counts, richer_counts), length).scale
    return [
        f"The box needs {comparison}. It allows {int((box.lower <= 0).sum()):,} of its "
        f"{box.size**2:,} transitions to be impossible, and state {box.states[rarest]!r} is left "
        f"only {count:,} times. Ten times the data would need noise of scale {richer:,.0f}."
        f"{_merging(counted, length, scale)} Leave gaps out (--missing public), or fit the list of "
        "plausible beliefs."
    ]


def _merging(counted: TransitionCounts, length: int, box_scale: float) -> str:
    """Say how much noise a box of fewer states would need, with all rare states merged."""
    by_frequency = np.argsort(-counted.transitions.sum(axis=1), kind="stable")
    options = []
    for keep in range(1, min(_KEPT + 1, len(by_frequency) - 1)):
        group = np.full(len(by_frequency), keep)
        group[by_frequency[:keep]] = np.arange(keep)
        merged = np.zeros((keep + 1, keep + 1), dtype=np.int64)
        np.add.at(merged, (group[:, np.newaxis], group), counted.transitions)
        scale = fit_price(ChainBox.from_counts(merged, merged), length).scale
        if scale < _NEARLY_ALL * box_scale:
            names = ", ".join(repr(counted.states[state]) for state in by_frequency[:keep])
            options.append(f"{scale:,.0f} with {names} kept and the others merged")
    return f" A box of fewer states needs noise of scale {'; '.join(options)}." if options else ""


DISTANCES: tuple[Number, ...] = (0, 0.01, 0.02, 0.05, 0.1, 0.2)


def noise_by_distance(
    chain: MarkovChain,
    length: int,
    epsilon: Number = 1,
    distances: Sequence[Number] = DISTANCES,
) -> tuple[tuple[float, float], ...]:
    """Return (distance, noise scale of a histogram) for boxes around a chain; see `around`.

    Cost: one calibration per distance.

    >>> noise_by_distance(MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 24, distances=[0])
    ((0.0, 2.0),)
    """
    return tuple(
        (
            float(to_fraction(distance, "The distance")),
            calibrate(around(chain, distance), length, epsilon, query=histogram()).scale,
        )
        for distance in distances
    )
