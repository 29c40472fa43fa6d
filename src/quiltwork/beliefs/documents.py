"""The parts of a belief's JSON that need care: labels with their types, fields with sentences.

Text, int, bool and None are themselves; a float is `{"float": "1.5"}` and a tuple
`{"tuple": […]}`, so that 1, 1.0, True, "1", None and (1,) survive any JSON reader. Matrices are
plain JSON numbers, which Python writes so that they read back bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quiltwork.beliefs.states import Label
from quiltwork.errors import InvalidInputError


def labels_to_json(labels: Iterable[Label]) -> list[Any]:
    """Write labels with their types.

    >>> labels_to_json([1, 1.5, True, "1", None, (2, "a")])
    [1, {'float': '1.5'}, True, '1', None, {'tuple': [2, 'a']}]
    """
    return [_label_to_json(label) for label in labels]


def _label_to_json(label: Label) -> Any:
    if isinstance(label, float):
        return {"float": repr(label)}
    if isinstance(label, tuple):
        return {"tuple": labels_to_json(label)}
    return label


def labels_from_json(values: Any) -> tuple[Label, ...]:
    """Read what `labels_to_json` wrote."""
    if not isinstance(values, list):
        raise InvalidInputError(f"Labels must be a JSON list, not {values!r}.")
    return tuple(_label_from_json(value) for value in values)


def _label_from_json(value: Any) -> Label:
    match value:
        case None | bool() | int() | str():
            return value
        case {"float": str(text), **rest} if not rest:
            return _float(text)
        case {"tuple": list(parts), **rest} if not rest:
            return labels_from_json(parts)
    raise InvalidInputError(
        f"{value!r} is not a label; write floats as {{'float': '1.5'}} and tuples as "
        "{'tuple': […]}."
    )


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInputError(f"{text!r} is not a float label.") from None


def field(document: dict[str, Any], name: str) -> Any:
    """Return a field of a document, or say that it is missing."""
    if name not in document:
        raise InvalidInputError(
            f"The document of schema {document['schema']!r} has no field {name!r}; "
            "it may have been cut or edited."
        )
    return document[name]
