"""Labels and fields in a belief's JSON: labels keep their types, missing fields get a message.

Text, int, bool and None are themselves; a float is `{"float": "1.5"}` and a tuple
`{"tuple": […]}`, so that 1, 1.0, True, "1", None and (1,) survive any JSON reader. Matrices are
plain JSON numbers, which Python writes so that they read back bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quiltwork.beliefs.states import Label
from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened


def labels_to_json(labels: Iterable[Label]) -> list[Any]:
    """Return labels as JSON values that keep their types.

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
    """Return the labels that `labels_to_json` wrote.

    >>> labels_from_json(["1", {"float": "1.5"}])
    ('1', 1.5)
    """
    if not isinstance(values, list):
        raise InvalidInputError(f"Labels must be a JSON list, not {shortened(values)}.")
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
        f"{shortened(value)} is not a label; write floats as {{'float': '1.5'}} and tuples as "
        "{'tuple': […]}."
    )


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInputError(f"{shortened(text)} is not a float label.") from None


def field(document: dict[str, Any], name: str) -> Any:
    """Return a field of a document; InvalidInputError if it is missing."""
    if name not in document:
        raise InvalidInputError(
            f"The document of schema {document['schema']!r} has no field {name!r}; it may have "
            "been truncated or edited."
        )
    return document[name]
