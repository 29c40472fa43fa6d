"""Priors and losses as text: names with parameters, or files."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from quiltwork import files
from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened, typed_fraction

_LARGEST_MEAN = 10**15
_PRIORS = "uniform, binomial:P, poisson:MEAN, earlier:VALUE:EPSILON, chain:FILE:STATE or a file"


def read_prior_text(text: str, n: int) -> Any:
    """Turn `binomial:0.1`, `chain:belief.json:walk`, a file name, … into a prior."""
    kind, _, rest = text.partition(":")
    if text == "uniform":
        return text
    if kind in ("binomial", "poisson"):
        return _distribution(kind, _number(rest, text), n)
    if kind == "earlier":
        return _earlier(rest, n, text)
    if kind == "chain":
        return _chain(rest, text)
    return [cell for row in _numbers(text, _PRIORS) for cell in row]


def read_loss_text(text: str) -> Any:
    """Turn a loss's name or a file with a matrix into a loss."""
    from quiltwork.counts.consumers.losses import read_loss

    if text.partition(":")[0] in ("absolute", "squared", "binary", "power", "asymmetric"):
        return read_loss(text)
    return read_loss(
        _numbers(text, "absolute, squared, binary, power:Q, asymmetric:UNDER:OVER or a file")
    )


def _distribution(kind: str, parameter: Fraction, n: int) -> Any:
    from scipy import stats

    if kind == "binomial" and 0 <= parameter <= 1:
        return stats.binom(n, float(parameter))
    if kind == "poisson" and 0 < parameter <= _LARGEST_MEAN:
        return stats.poisson(float(parameter))
    wanted = "a probability" if kind == "binomial" else f"a mean > 0, at most {_LARGEST_MEAN:g}"
    raise InvalidInputError(f"{kind}:{shortened(parameter)} needs {wanted}.")


def _earlier(rest: str, n: int, text: str) -> Any:
    from quiltwork.counts.alpha_levels import alpha_for_epsilon
    from quiltwork.counts.consumers.priors import learn_from_release

    value, _, epsilon = rest.partition(":")
    released = _number(value, text)
    if released.denominator != 1:
        raise InvalidInputError(f"{value!r} in {text!r} is no released count; they are integers.")
    return learn_from_release(int(released), n, alpha_for_epsilon(_number(epsilon, text)))


def _chain(rest: str, text: str) -> Any:
    from quiltwork.beliefs import MarkovChain
    from quiltwork.counts.consumers.priors import ChainCounts

    path, _, state = rest.rpartition(":")
    if not path:
        raise InvalidInputError(f"Cannot read the prior {text!r}; write chain:FILE:STATE.")
    chain = MarkovChain.from_json(_text(path))
    named = {str(label): label for label in chain.states}
    if state not in named:
        raise InvalidInputError(f"The chain has no state {state!r}; it has {', '.join(named)}.")
    return ChainCounts(chain, named[state])


def _numbers(path: str, known: str) -> list[list[Fraction]]:
    """Read a file of numbers: JSON lists, or lines with commas; a header line is skipped."""
    if not Path(path).exists():
        raise InvalidInputError(f"{path!r} is no file and none of: {known}.")
    text = _text(path)
    rows = _json_rows(text, path) if text.lstrip()[:1] in ("[", "{") else _csv_rows(text)
    found = [[_number(cell, path) for cell in row] for row in rows]
    if not any(found):
        raise InvalidInputError(f"{path!r} holds no numbers.")
    return found


def _json_rows(text: str, path: str) -> list[list[str]]:
    try:
        read = files.parse(text)
    except InvalidInputError as error:
        raise InvalidInputError(f"{path!r}: {error}") from None
    rows = read if isinstance(read, list) and any(isinstance(row, list) for row in read) else [read]
    for row in rows:
        if not isinstance(row, list):
            raise InvalidInputError(
                f"{path!r} must hold a JSON list of numbers, or a list of such lists."
            )
    return [[str(cell) for cell in row] for row in rows]


def _csv_rows(text: str) -> list[list[str]]:
    """Split lines at commas; a first line without any number is a header and is skipped."""
    rows = [line.split(",") for line in text.splitlines() if line.strip()]
    if rows and all(typed_fraction(cell) is None for cell in rows[0]):
        rows = rows[1:]
    return rows


def _text(path: str) -> str:
    try:
        return files.contents(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInputError(f"{path!r} is not UTF-8 text.") from None


def _number(text: str, where: str) -> Fraction:
    number = typed_fraction(text)
    if number is None:
        raise InvalidInputError(f"{text!r} in {where!r} is not a number such as 1, 0.5 or 1/3.")
    return number
