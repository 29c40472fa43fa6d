"""The texts of published values: writing, parsing, the values they cover, the groups that rows fit.

A value is published as itself, as `low..high` (numbers, dates and declared orders), as the label of
a hierarchy, or as a set `{x, y}` of categories. A missing value is `missing`; together with numbers
it is a set too: `{20..25, missing}`. Categories that contain characters with a meaning here are
quoted as in JSON.

Someone with original rows and the published texts may have a value spelled differently from what
was published. So values and texts are compared by their canonical values: 31, 31.0 and `31` are
one.
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
    """A parsed published text: a range of values, or a set of them.

    Attributes:
        form: "range" (`values` are its two ends, equal for a single value) or "set".
        values: the texts in it, without None.
        missing: whether it includes the missing value.
    """

    form: Literal["range", "set"]
    values: tuple[str, ...]
    missing: bool = False


def value_text(value: Any) -> str:
    """Return the text of one value.

    >>> value_text(31.0), value_text("Never-married"), value_text("a, b"), value_text(None)
    ('31', 'Never-married', '"a, b"', 'missing')
    """
    if value is None:
        return MISSING
    text = _unquoted(value)
    return json.dumps(text, ensure_ascii=False) if _SPECIAL.search(text) else text


def _unquoted(value: Any) -> str:
    """Return a value as text, whole floats without a decimal point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def range_text(low: Any, high: Any, missing: bool = False) -> str:
    """Return `low..high`, or the value if both are equal.

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
    """Parse a published text; a text of no known form is a value, as in tables made elsewhere.

    >>> label_of("20..25").values, label_of("{flu, asthma}").values, label_of('"x').values
    (('20', '25'), ('flu', 'asthma'), ('"x', '"x'))
    >>> label_of("{20..25, missing}")
    Label(form='range', values=('20', '25'), missing=True)
    """
    body = unescape_formula(text.strip()) if isinstance(text, str) else value_text(text)
    if "{" not in body and '"' not in body and body != MISSING:  # a fast path for most texts
        low, sign, high = body.partition(RANGE)
        if not sign or (low and high):
            return Label("range", (low, high) if sign else (body, body))
    pieces = [body]
    if body.startswith("{") and body.endswith("}"):
        matches = re.findall(rf'(?:{_QUOTED}|[^,"])+', body[1:-1])
        pieces = [piece.strip() for piece in matches] or pieces
    members = [piece for piece in pieces if piece != MISSING]
    missing = len(members) < len(pieces)
    try:
        if len(members) == 1:
            ends = re.fullmatch(rf'({_QUOTED}|[^"]+?)\.\.({_QUOTED}|[^"]+)', members[0])
            low, high = map(_plain, ends.groups() if ends else members * 2)
            return Label("range", (low, high), missing)
        return Label("set", tuple(map(_plain, members)), missing)
    # Quotes that are not JSON: a text from another tool, taken literally.
    except ValueError:
        return Label("range", (body, body))


def _plain(piece: str) -> str:
    return str(json.loads(piece)) if piece.startswith('"') else piece


Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LabelReader:
    """Finds the original values of one column that a published text covers.

    Attributes:
        column: the original values; a missing one is the last.
        order: the declared order of the column, which may name values that do not occur in it.
        written: values that some text names in exactly this column's spelling, `F` beside `f`. Only
            a text with that spelling covers them; other values are matched in any spelling.

    >>> ages = Column("age", "numeric", (20, 25, 31), np.zeros(0, dtype=np.int32))
    >>> [LabelReader(ages).codes(text).tolist() for text in ("20..30", "*", "2*", "{20, 31}")]
    [[0, 1], [0, 1, 2], [0, 1], [0, 2]]
    """

    column: Column
    order: Sequence[Any] = ()
    written: frozenset[str] = frozenset()

    def codes(self, text: Any, label: Label | None = None) -> Codes:
        """Return the codes of the values that a text covers; stars match any characters.

        `label` is the parsed text, if known.
        """
        if text is None:
            return np.array(self._missing, dtype=np.int64)
        plain = unescape_formula(text.strip()) if isinstance(text, str) else MISSING
        # Declared labels first: a label may look like a range.
        if plain != MISSING and plain in self._under:
            return np.array(self._under[plain], dtype=np.int64)
        label = label_of(text) if label is None else label
        codes = [*self._missing] if label.missing else []
        if label.form == "range" and label.values[0] != label.values[1]:
            codes += self._between(*label.values)
        else:
            for value in dict.fromkeys(label.values):
                codes += self._one(value)
        return np.array(codes, dtype=np.int64)

    def understands(self, text: Any, label: Label) -> bool:
        """Return whether the text's meaning is known, even if it covers none of these values.

        A word may be a value that only others have, but not where numbers or ordered values are
        expected; a range needs ordered values.
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
        """The codes of values by canonical value; those in `written` by their exact text."""
        codes: dict[Any, list[int]] = {}
        for code, value in self._known.items():
            text = _unquoted(value)
            key = (text,) if text in self.written else canonical_value(value)
            codes.setdefault(key, []).append(code)
        return codes

    @cached_property
    def _under(self) -> Mapping[str, list[int]]:
        """The codes under each label of the hierarchy."""
        codes: dict[str, list[int]] = {}
        tree = self.column.hierarchy
        if tree is not None:
            for code, value in self._known.items():
                for label in dict.fromkeys(tree.paths[tree.leaf(value)]):
                    codes.setdefault(label, []).append(code)
        return codes

    @cached_property
    def _line(self) -> tuple[list[Any], Callable[[str], Any]]:
        """The positions of the values, ascending, and the function that locates a range's end.

        Numbers, dates and times are positioned by size; other values, and values declared in
        another order, by their rank in that order.
        """
        values, present = self.order or list(self._known.values()), self._known.values()
        positions = [ordered_key(value) for value in values]
        if None not in positions and all(a <= b for a, b in pairwise(filter(None, positions))):
            # cached: many labels share their ends
            return [ordered_key(value) for value in present], cache(ordered_key)
        ranks = {leaf_text(value): rank for rank, value in enumerate(values)}
        return [ranks[leaf_text(value)] for value in present], ranks.get

    def _one(self, text: str) -> list[int]:
        if text in self._under:
            return self._under[text]
        codes = self._codes_of.get((text,), []) + self._codes_of.get(canonical_value(text), [])
        return self._masked(text) if not codes and text.endswith("*") else codes

    def _masked(self, text: str) -> list[int]:
        """Return the codes of values that match a text ending in stars."""
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
        positions, position_of = self._line
        first, last = position_of(low), position_of(high)
        if first is None or last is None:
            return []
        return list(range(bisect_left(positions, first), bisect_right(positions, last)))


def fitting_groups(
    published: Table, own: Table, rows: Codes, blocks: Sequence[tuple[Codes, Codes]] = ()
) -> tuple[Codes, Codes]:
    """Return every pair of a row (position in `rows`, ascending) and a group that it fits.

    Texts are read as the own table declares them: with its orders and hierarchies. A row that might
    be in a group whose text is not understood counts as fitting no group, since its group is
    unknown. The groups that a value fits are a bit set; those that a row fits are the intersection
    over its values. `blocks` restrict the search: pairs of positions in `rows` and the groups
    allowed for them, both ascending. Cost: O(distinct rows × groups × quasi-identifiers / 64), or
    the sum of that over the blocks.
    """
    columns = {column.name: column for column in published.encoded.quasi}
    tests = []
    for own_column in own.encoded.quasi:
        column = columns[own_column.name]
        covered, unread = _covering(column, own_column, own.orders.get(own_column.name, ()))
        tests.append(
            _ColumnTest(covered, unread, column.codes[published.groups.first], own_column.codes)
        )
    if not blocks:
        blocks = [(np.arange(len(rows)), np.arange(published.groups.count))]
    pairs = [_fits(tests, rows[positions], groups) for positions, groups in blocks]
    matches = [
        (positions[row], groups[member])
        for (positions, groups), (row, member) in zip(blocks, pairs, strict=True)
    ]
    row, group = (np.concatenate(column) for column in zip(*matches, strict=True))
    # Blocks come one after the other; callers expect rows in ascending order.
    order = np.argsort(row, kind="stable")
    return row[order], group[order]


@dataclass(frozen=True, eq=False)
class _ColumnTest:
    """Which texts of one column cover which own values, certainly and possibly.

    Attributes:
        covered, unread: text × own value; `unread` where the text may cover the value but is not
            understood.
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
    distinct = group_rows(codes, [test.covered.shape[1] for test in tests])
    sets = []
    for test, column in zip(tests, codes, strict=True):
        values, value_of = np.unique(column[distinct.first], return_inverse=True)
        text_of, any_unread = test.text_of[groups], bool(test.unread.any())
        covers = _group_sets(test.covered[:, values], text_of)
        may_cover = _group_sets(test.unread[:, values], text_of) if any_unread else covers
        sets.append((covers, may_cover, any_unread, value_of))
    words = max(1, -(-len(groups) // _BITS))
    step = max(1, _PORTION // words)
    parts = [np.zeros((2, 0), dtype=np.int64)]
    for start in range(0, distinct.count, step):
        size = min(step, distinct.count - start)
        certain = np.full((size, words), np.iinfo(np.uint64).max)
        possible_only = np.zeros_like(certain)
        for covers, may_cover, any_unread, value_of in sets:
            values = value_of[start : start + step]
            covering = covers[values]
            if any_unread or possible_only.any():
                possible = may_cover[values] if any_unread else np.zeros_like(covering)
                possible_only = (possible_only & (covering | possible)) | (certain & possible)
            certain &= covering
        # A row that may be in a group of unknown meaning is not assigned to any.
        certain[possible_only.any(axis=1)] = 0
        row, member = _members(certain)
        parts.append(np.array([start + row, member]))
    row_kind, at = np.concatenate(parts, axis=1)
    first = np.searchsorted(row_kind, np.arange(distinct.count + 1))
    sizes = np.diff(first)[distinct.labels]
    return np.repeat(np.arange(len(rows)), sizes), at[
        concatenated_ranges(first[distinct.labels], sizes)
    ]


_BITS = 64
_PORTION = 1 << 20
"""Words of bits that are compared at a time, to bound the memory."""


def _group_sets(covers: NDArray[np.bool_], group: NDArray[Any]) -> NDArray[np.uint64]:
    """Return, for each value, the groups whose text covers it, as a bit set: value × words."""
    words = max(1, -(-len(group) // _BITS))
    sets = np.zeros((covers.shape[1], words * 8), dtype=np.uint8)
    step = max(1, (_PORTION << 3) // max(1, len(group)))
    for start in range(0, len(sets), step):
        packed = np.packbits(covers[:, start : start + step].T[:, group], 1, "little")
        sets[start : start + step, : packed.shape[1]] = packed
    return sets.view("<u8")


def _members(sets: NDArray[np.uint64]) -> tuple[Codes, Codes]:
    """Return (set, member) for every member of bit sets, in order."""
    row, word = np.nonzero(sets)
    bits = np.unpackbits(sets[row, word].view(np.uint8).reshape(-1, 8), 1, bitorder="little")
    at, bit = np.nonzero(bits)
    return row[at], word[at] * _BITS + bit


def _covering(
    published: Column, own: Column, order: Sequence[Any]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which published texts (rows) cover which own values (columns), and which possibly do.

    Where sets are published, an unknown word is a value that others have. Where the root of an
    undeclared hierarchy is published, an unknown text may be one of its labels.
    """
    labels = [label_of(text) for text in published.values]
    reader = LabelReader(own, order, frozenset(text for pair in labels for text in pair.values))
    covered = np.zeros((len(published.values), len(own.values)), dtype=bool)
    for row, text, label in zip(covered, published.values, labels, strict=True):
        row[reader.codes(text, label)] = True
    pairs = zip(published.values, labels, strict=True)
    unread = ~np.array([reader.understands(*pair) for pair in pairs])
    # Sets list what occurs, so an unknown member belongs to other providers' values.
    if any(label.form == "set" and label.values for label in labels):
        unread[:] = False
    elif own.hierarchy is None and any(label.values == (ROOT, ROOT) for label in labels):
        unread |= ~covered.any(axis=1)
    is_present = np.array([value is not None for value in own.values])
    return covered, unread[:, None] & is_present
