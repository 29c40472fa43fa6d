"""The texts of published values, which original values they cover, and which groups a row fits.

A value is published as itself, as `low..high` (numbers, dates and declared orders), as the label
of a hierarchy, or as a set `{x, y}` of categories. A missing value is `missing`; together with
numbers it is a set too: `{20..25, missing}`. Categories that contain signs with a meaning here are
quoted as in JSON.

For those who hold original rows and the published texts only, values and texts are compared by what
they may mean (`meanings`): whoever holds a row may have it spelled otherwise than it was published,
so 31, 31.0 and `31` are one.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from quiltwork.delimited import unescape_formula
from quiltwork.tables.codes.distinct import concatenated_ranges
from quiltwork.tables.codes.encoding import Column, group_rows
from quiltwork.tables.codes.hierarchies import ROOT, leaf_text
from quiltwork.tables.input.canonical_values import canonical_value, ordered_key
from quiltwork.tables.table import Table

MISSING = "missing"
RANGE = ".."
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_SPECIAL = re.compile(r'^[\s.]|[\s.]$|[{},"]|\.\.|^missing$|^$')


@dataclass(frozen=True)
class Label:
    """One published value: a range of values, or a set of them.

    Attributes:
        form: "range" (`values` are its two ends, equal for a single value) or "set".
        values: the texts in it, without None.
        missing: whether a missing value is in it.
    """

    form: Literal["range", "set"]
    values: tuple[str, ...]
    missing: bool = False


def value_text(value: Any) -> str:
    """Return how one value is written.

    >>> value_text(31.0), value_text("Never-married"), value_text("a, b"), value_text(None)
    ('31', 'Never-married', '"a, b"', 'missing')
    """
    if value is None:
        return MISSING
    text = _unquoted(value)
    return json.dumps(text, ensure_ascii=False) if _SPECIAL.search(text) else text


def _unquoted(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def range_text(low: Any, high: Any, missing: bool = False) -> str:
    """Return `low..high`, or the value if they are equal.

    >>> range_text(20, 25), range_text(20, 20), range_text(20, 25, missing=True)
    ('20..25', '20', '{20..25, missing}')
    """
    text = value_text(low) if low == high else f"{value_text(low)}{RANGE}{value_text(high)}"
    return f"{{{text}, {MISSING}}}" if missing else text


def set_text(values: Sequence[Any]) -> str:
    """Return `{x, y}`, or the value if there is only one.

    >>> set_text(["flu", "asthma"]), set_text(["flu"])
    ('{flu, asthma}', 'flu')
    """
    if len(values) == 1:
        return value_text(values[0])
    return f"{{{', '.join(map(value_text, values))}}}"


def label_of(text: Any) -> Label:
    """Read a published text; one that is none is a value as it stands, of a table made elsewhere.

    >>> label_of("20..25").values, label_of("{flu, asthma}").values, label_of('"x').values
    (('20', '25'), ('flu', 'asthma'), ('"x', '"x'))
    >>> label_of("{20..25, missing}")
    Label(form='range', values=('20', '25'), missing=True)
    """
    body = unescape_formula(text.strip()) if isinstance(text, str) else value_text(text)
    if "{" not in body and '"' not in body and body != MISSING:  # what most are, and quick to read
        low, sign, high = body.partition(RANGE)
        if not sign or (low and high):
            return Label("range", (low, high) if sign else (body, body))
    pieces = [body]
    if body.startswith("{") and body.endswith("}"):
        found = re.findall(rf'(?:{_QUOTED}|[^,"])+', body[1:-1])
        pieces = [piece.strip() for piece in found] or pieces
    known = [piece for piece in pieces if piece != MISSING]
    missing = len(known) < len(pieces)
    try:
        if len(known) == 1:
            ends = re.fullmatch(rf'({_QUOTED}|[^"]+?)\.\.({_QUOTED}|[^"]+)', known[0])
            low, high = map(_plain, ends.groups() if ends else known * 2)
            return Label("range", (low, high), missing)
        return Label("set", tuple(map(_plain, known)), missing)
    except ValueError:
        return Label("range", (body, body))


def _plain(piece: str) -> str:
    return str(json.loads(piece)) if piece.startswith('"') else piece


Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LabelReader:
    """Reads the published texts of one original column.

    Attributes:
        column: the original values; a missing one is the last.
        order: the declared order of the column, which may name values that do not occur in it.
        written: the values that some text names as this column writes them: `F` beside `f`. Only a
            text with that spelling covers them; others are found in whatever spelling.

    >>> ages = Column("age", "numeric", (20, 25, 31), np.zeros(0, dtype=np.int32))
    >>> [LabelReader(ages).codes(text).tolist() for text in ("20..30", "*", "2*", "{20, 31}")]
    [[0, 1], [0, 1, 2], [0, 1], [0, 2]]
    """

    column: Column
    order: Sequence[Any] = ()
    written: frozenset[str] = frozenset()

    def codes(self, text: Any, label: Label | None = None) -> Codes:
        """Return the codes of the values that a text covers; stars cover what they stand for.

        `label` is what `label_of` reads in it, if that is known.
        """
        if text is None:
            return np.array(self._missing, dtype=np.int64)
        plain = unescape_formula(text.strip()) if isinstance(text, str) else MISSING
        if plain != MISSING and plain in self._under:  # a label may look like a range
            return np.array(self._under[plain], dtype=np.int64)
        label = label_of(text) if label is None else label
        found = [*self._missing] if label.missing else []
        if label.form == "range" and label.values[0] != label.values[1]:
            found += self._between(*label.values)
        else:
            for value in dict.fromkeys(label.values):
                found += self._one(value)
        return np.array(found, dtype=np.int64)

    def understands(self, text: Any, label: Label) -> bool:
        """Tell whether it is known what a text covers, if only that it is none of these values.

        A word may be a value that others have, but not alone where numbers or values of an order
        are expected; a range needs values that have one.
        """
        tree = self.column.hierarchy
        if tree is not None:
            return str(text) in tree.labels or {*label.values} <= tree.labels
        if label.form == "set":
            return True
        if self.column.kind == "categorical":
            return label.values[0] == label.values[1]
        return all(self._line[1](end) is not None or end.endswith("*") for end in label.values)

    @cached_property
    def _missing(self) -> list[int]:
        return [code for code, value in enumerate(self.column.values) if value is None]

    @cached_property
    def _known(self) -> dict[int, Any]:
        return {code: value for code, value in enumerate(self.column.values) if value is not None}

    @cached_property
    def _codes_of(self) -> dict[Any, list[int]]:
        """The codes of all values that may mean the same; of those in `written`, by their text."""
        found: dict[Any, list[int]] = {}
        for code, value in self._known.items():
            text = _unquoted(value)
            key = (text,) if text in self.written else canonical_value(value)
            found.setdefault(key, []).append(code)
        return found

    @cached_property
    def _under(self) -> Mapping[str, list[int]]:
        """The codes under each label of the hierarchy."""
        found: dict[str, list[int]] = {}
        tree = self.column.hierarchy
        if tree is not None:
            for code, value in self._known.items():
                for label in dict.fromkeys(tree.paths[tree.leaf(value)]):
                    found.setdefault(label, []).append(code)
        return found

    @cached_property
    def _line(self) -> tuple[list[Any], Callable[[str], Any]]:
        """Where each value lies, ascending, and how the place of a range's end is found.

        Numbers, dates and times lie where they are; other values, and those that were declared in
        another order, where the order has them.
        """
        values, known = self.order or list(self._known.values()), self._known.values()
        lie = [ordered_key(value) for value in values]
        if None not in lie and all(a <= b for a, b in pairwise(filter(None, lie))):
            # Ends are shared by labels.
            return [ordered_key(value) for value in known], cache(ordered_key)
        ranks = {leaf_text(value): rank for rank, value in enumerate(values)}
        return [ranks[leaf_text(value)] for value in known], ranks.get

    def _one(self, text: str) -> list[int]:
        if text in self._under:
            return self._under[text]
        found = self._codes_of.get((text,), []) + self._codes_of.get(canonical_value(text), [])
        return self._masked(text) if not found and text.endswith("*") else found

    def _masked(self, text: str) -> list[int]:
        beginning, any_length = text.rstrip("*"), text.count("*") == 1
        values = {code: leaf_text(value) for code, value in self._known.items()}
        return [
            code
            for code, value in values.items()
            if value.startswith(beginning) and (any_length or len(value) == len(text))
        ]

    def _between(self, low: str, high: str) -> list[int]:
        if self.column.kind == "categorical":
            return []
        lie, where = self._line
        first, last = where(low), where(high)
        if first is None or last is None:
            return []
        return list(range(bisect_left(lie, first), bisect_right(lie, last)))


def fitting_groups(
    published: Table, own: Table, rows: Codes, blocks: Sequence[tuple[Codes, Codes]] = ()
) -> tuple[Codes, Codes]:
    """Return every fit of one of `rows` of the own table: which of them, ascending, and the group.

    The texts are read as the own table declares: its orders and hierarchies. A row that may be in a
    group whose text is not understood is taken to fit none: where it is is not known. The groups
    that a value fits are a set of bits; the groups that a row fits are in the sets of all its
    values. With `blocks`, positions in `rows` and the groups that may be theirs, both ascending,
    no row is asked about another group. Cost: O(distinct rows × groups × quasi-identifiers / 64),
    or the sum of that over the blocks.
    """
    columns = {column.name: column for column in published.encoded.quasi}
    tests = []
    for mine in own.encoded.quasi:
        shown = columns[mine.name]
        covered, unread = _covering(shown, mine, own.orders.get(mine.name, ()))
        tests.append(_ColumnTest(covered, unread, shown.codes[published.groups.first], mine.codes))
    if not blocks:
        blocks = [(np.arange(len(rows)), np.arange(published.groups.count))]
    parts = [_fits(tests, rows[some], groups) for some, groups in blocks]
    found = [
        (some[row], groups[at]) for (some, groups), (row, at) in zip(blocks, parts, strict=True)
    ]
    row, group = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(row, kind="stable")
    return row[order], group[order]


@dataclass(frozen=True, eq=False)
class _ColumnTest:
    """What is known of one column: which texts cover which values, and which perhaps do.

    Attributes:
        covered, unread: text × own value.
        text_of: of each group, its text.
        value_of: of each own row, its value.
    """

    covered: NDArray[np.bool_]
    unread: NDArray[np.bool_]
    text_of: NDArray[Any]
    value_of: NDArray[Any]


def _fits(tests: Sequence[_ColumnTest], rows: Codes, groups: Codes) -> tuple[Codes, Codes]:
    """Return every fit of some rows among some groups, as positions in both."""
    codes = [test.value_of[rows] for test in tests]
    alike = group_rows(codes, [test.covered.shape[1] for test in tests])
    sets = []
    for test, column in zip(tests, codes, strict=True):
        values, value_of = np.unique(column[alike.first], return_inverse=True)
        text_of, some = test.text_of[groups], bool(test.unread.any())
        has = _group_sets(test.covered[:, values], text_of)
        may_have = _group_sets(test.unread[:, values], text_of) if some else has
        sets.append((has, may_have, some, value_of))
    words = max(1, -(-len(groups) // _BITS))
    step = max(1, _PORTION // words)
    found = [np.zeros((2, 0), dtype=np.int64)]
    for start in range(0, alike.count, step):
        size = min(step, alike.count - start)
        fits = np.full((size, words), np.iinfo(np.uint64).max)
        doubt = np.zeros_like(fits)
        for has, may_have, some, value_of in sets:
            values = value_of[start : start + step]
            inside = has[values]
            if some or doubt.any():
                perhaps = may_have[values] if some else np.zeros_like(inside)
                doubt = (doubt & (inside | perhaps)) | (fits & perhaps)
            fits &= inside
        fits[doubt.any(axis=1)] = 0
        row, member = _members(fits)
        found.append(np.array([start + row, member]))
    kind, at = np.concatenate(found, axis=1)
    first = np.searchsorted(kind, np.arange(alike.count + 1))
    sizes = np.diff(first)[alike.labels]
    return np.repeat(np.arange(len(rows)), sizes), at[
        concatenated_ranges(first[alike.labels], sizes)
    ]


_BITS = 64
_PORTION = 1 << 20
"""Words of bits that are compared at a time."""


def _group_sets(of_text: NDArray[np.bool_], group: NDArray[Any]) -> NDArray[np.uint64]:
    """Return for each value the set of groups whose text, by its code, has it: value × words."""
    words = max(1, -(-len(group) // _BITS))
    sets = np.zeros((of_text.shape[1], words * 8), dtype=np.uint8)
    step = max(1, (_PORTION << 3) // max(1, len(group)))
    for start in range(0, len(sets), step):
        packed = np.packbits(of_text[:, start : start + step].T[:, group], 1, "little")
        sets[start : start + step, : packed.shape[1]] = packed
    return sets.view("<u8")


def _members(sets: NDArray[np.uint64]) -> tuple[Codes, Codes]:
    """Return (set, member) for every member of sets of bits, in order."""
    row, word = np.nonzero(sets)
    bits = np.unpackbits(sets[row, word].view(np.uint8).reshape(-1, 8), 1, bitorder="little")
    at, bit = np.nonzero(bits)
    return row[at], word[at] * _BITS + bit


def _covering(
    published: Column, own: Column, order: Sequence[Any]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell which published texts (rows) cover which own values (columns), and which perhaps do.

    Next to sets a word is a value that others have. Next to the root of a hierarchy that was not
    declared, an unknown one may be a label of it.
    """
    labels = [label_of(text) for text in published.values]
    reader = LabelReader(own, order, frozenset(text for one in labels for text in one.values))
    covered = np.zeros((len(published.values), len(own.values)), dtype=bool)
    for row, text, label in zip(covered, published.values, labels, strict=True):
        row[reader.codes(text, label)] = True
    shown = zip(published.values, labels, strict=True)
    unread = ~np.array([reader.understands(*one) for one in shown])
    if any(label.form == "set" and label.values for label in labels):
        unread[:] = False
    elif own.hierarchy is None and any(label.values == (ROOT, ROOT) for label in labels):
        unread |= ~covered.any(axis=1)
    known = np.array([value is not None for value in own.values])
    return covered, unread[:, None] & known
