"""The release's JSON: schema `quiltwork/release`, version 1.

Exact numbers are strings ("1/10"), beside plain ones for readers; labels carry their types as in
beliefs. The document depends on the data through the noisy answer alone.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from quiltwork import files
from quiltwork.beliefs.documents import field, labels_from_json, labels_to_json
from quiltwork.beliefs.secrets import pairs_from_json, pairs_to_json
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, parse_stored_fraction
from quiltwork.queries.document import from_document, to_document
from quiltwork.series.releases.released_answer import ReleasedAnswer
from quiltwork.series.releases.usefulness import usefulness_of

SCHEMA, VERSION = "release", 1
AnyRelease = TypeVar("AnyRelease", bound=ReleasedAnswer)

_EXACT = ("exact_epsilon", "noise_scale", "offset", "unit", "rounding")
_PLAIN = (
    *("points", "length", "subjects", "method", "node", "influence", "before", "episode"),
    *("belief_digest", "dataset"),
)
_WHERE_ASSUMED = "assumed_step"
"""A field that is written only if it is set, so that older requests stay the same."""
_LISTS = ("quilt", "secrets", "beliefs", "processing")


def release_to_json(release: ReleasedAnswer) -> str:
    """Write a release."""
    body: dict[str, Any] = {name: getattr(release, name) for name in _PLAIN}
    body |= {name: str(getattr(release, name)) for name in _EXACT}
    for name in _LISTS:
        parts = getattr(release, name)
        body[name] = None if parts is None else list(parts)
    body |= {
        "query": to_document(release.query),
        "mechanism": release.mechanism,
        "cells": labels_to_json(release.cells),
        "noisy": [str(m) for m in release.noisy],
        "total": None if release.total is None else str(release.total),
        "value": _value_to_json(release),
    }
    if release.noisy:
        body |= _for_readers(release)
    if release.delta:
        body["delta"] = str(release.delta)
    if release.assumed_step is not None:
        body[_WHERE_ASSUMED] = release.assumed_step
    if release.fitted:
        body["fitted"] = True
    if release.gaps is not None:
        body["gaps"] = release.gaps
    if release.pairs is not None:
        body["pairs"] = pairs_to_json(release.pairs)
    if release.period is not None:
        body["period"] = list(release.period)
    return files.dump(SCHEMA, VERSION, body)


def _for_readers(release: ReleasedAnswer) -> dict[str, Any]:
    """Return values that follow from the others, as plain numbers; they are not read back."""
    plain = {"epsilon": release.epsilon, "scale": release.scale, "protects": release.protects}
    verdict = usefulness_of(release)._asdict() if release.noise_scale else {}
    if release.mechanism == "exponential":
        return {**plain, **verdict, "shortfall": release.shortfall()}
    low, high = (np.ravel(end).tolist() for end in release.interval())
    return {**plain, **verdict, "intervals": [list(pair) for pair in zip(low, high, strict=True)]}


def release_from_json(kind: type[AnyRelease], text: str | bytes) -> AnyRelease:
    """Read a release of this class back."""
    document = files.load(text, SCHEMA, (VERSION,))
    try:
        return kind(**_arguments(document))
    except InvalidInputError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, ZeroDivisionError) as error:
        raise InvalidInputError(
            f"The release document is damaged: {error}; it may have been cut or edited."
        ) from None


def _arguments(document: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a release from its document."""
    body: dict[str, Any] = {name: field(document, name) for name in _PLAIN}
    body |= {name: _fraction(field(document, name)) for name in _EXACT}
    for name in _LISTS:
        parts = field(document, name)
        body[name] = None if parts is None else tuple(parts)
    step = document.get(_WHERE_ASSUMED)
    body[_WHERE_ASSUMED] = None if step is None else integer(step, _WHERE_ASSUMED, 1)
    begin_and_end = document.get("period")
    body["period"] = None if begin_and_end is None else tuple(map(str, begin_and_end))
    body["fitted"] = document.get("fitted") is True
    gaps = document.get("gaps")
    body["gaps"] = None if gaps is None else integer(gaps, "gaps", 0)
    body["delta"] = _fraction(document.get("delta", "0"))
    pairs = pairs_from_json(document.get("pairs"))
    body["pairs"] = None if pairs is None else tuple((a, b) for a, b in pairs)
    total = field(document, "total")
    query = from_document(field(document, "query"))
    value = field(document, "value")
    return dict(
        query=query,
        cells=labels_from_json(field(document, "cells")),
        noisy=tuple(int(m) for m in field(document, "noisy")),
        total=None if total is None else _fraction(total),
        value=labels_from_json([value])[0] if query.mechanism == "exponential" else _number(value),
        **body,
    )


def _value_to_json(release: ReleasedAnswer) -> Any:
    if isinstance(release.value, np.ndarray):
        return release.value.tolist()
    if release.mechanism == "exponential":
        return labels_to_json([release.value])[0]
    return release.value


def _number(value: Any) -> Any:
    if isinstance(value, list):
        array = np.array(value)
        if array.dtype.kind not in "if":
            raise InvalidInputError(f"The released value must be numbers, not {value!r}.")
        return array
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInputError(f"The released value must be a number, not {value!r}.")
    return value


def _fraction(text: Any) -> Fraction:
    return parse_stored_fraction(text, "A number of the release")
