"""Columns as integer codes: what every part of this room computes on.

A column becomes the distinct values in their order and one code per row, of the fewest bytes that
hold them. Cost: one hash table per column, O(rows), plus a sort of the distinct values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError
from quiltwork.tables.codes.distinct import NO_SETS, NumberSets, who_knows
from quiltwork.tables.codes.hierarchies import Hierarchy, leaf_text
from quiltwork.tables.input.canonical_values import canonical_value, is_missing, number
from quiltwork.tables.input.frames import ArrowFrame, arrow
from quiltwork.wording import argument

Scale: TypeAlias = Literal["numeric", "ordinal", "categorical"]
Missing: TypeAlias = Literal["error", "value"]
Codes: TypeAlias = NDArray[np.signedinteger[Any]]
_LARGEST = 1e300


@dataclass(frozen=True, eq=False)
class Column:
    """One column.

    Attributes:
        name: of the column.
        kind: "numeric" (values ascend), "ordinal" (declared order, or dates) or "categorical"
            (sorted, or in the order of the hierarchy's leaves).
        values: the distinct values in their order; a missing value is None, last. Numbers may be
            texts, as a file spells them.
        codes: for each row, the index into `values`.
        hierarchy: the user's hierarchy, if there is one.
    """

    name: str
    kind: Scale
    values: tuple[Any, ...]
    codes: Codes
    hierarchy: Hierarchy | None = None

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The values of a numeric column as floats; a missing one is NaN."""
        return np.array([np.nan if v is None else float(v) for v in self.values])

    @property
    def unordered(self) -> bool:
        """Whether groups publish sets of its values: no order, no hierarchy."""
        return self.kind == "categorical" and self.hierarchy is None

    @cached_property
    def positions(self) -> NDArray[np.float64]:
        """Where each code lies between the least (0) and the largest (1)."""
        if self.kind == "numeric" and self.hierarchy is None:
            known = self.numbers[~np.isnan(self.numbers)]
            low, high = (known[0], known[-1]) if len(known) else (0.0, 0.0)
            # A missing value is as far from every number as they can be from each other.
            filled = np.where(np.isnan(self.numbers), 2 * high - low, self.numbers) - low
        else:
            filled = np.arange(len(self.values), dtype=np.float64)
        span = float(filled[-1]) if len(filled) else 0.0
        return filled / span if span > 0 else np.zeros(len(filled))


@dataclass(frozen=True, eq=False)
class CodedTable:
    """A table as arrays.

    Attributes:
        quasi: the quasi-identifiers.
        provider: for each row, the index into `providers`.
        providers: the labels of the providers, sorted.
        sensitive: for each row, the index into `sensitive_values`.
        secrets: the sensitive columns one by one, as they are spelled.
        sensitive_values: values, or tuples of them if there are several sensitive columns; only
            those that occur.
        sensitive_kind: what order they have; "categorical" for several columns.
        subject: for each row, which person it is about; None if every row is its own person.
        rows: how many there are.
        class_of: for each sensitive value, the class that constraints take it for; the number of
            classes where it counts as no value. None: every value is a class of its own.
        class_labels: of the classes; those of the values without `class_of`.
    """

    quasi: tuple[Column, ...]
    provider: Codes
    providers: tuple[Any, ...]
    sensitive: Codes
    sensitive_values: tuple[Any, ...]
    sensitive_kind: Scale
    subject: NDArray[np.int64] | None
    rows: int
    secrets: tuple[Column, ...] = ()
    class_of: NDArray[np.int64] | None = None
    class_labels: tuple[Any, ...] = ()

    @property
    def respelled(self) -> list[str]:
        """The sensitive columns in which a value has several spellings, which count as one."""
        return [
            one.name for one in self.secrets if len(merge_spellings(one).values) < len(one.values)
        ]

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels of what constraints count as sensitive values."""
        return self.sensitive_values if self.class_of is None else self.class_labels

    @cached_property
    def row_classes(self) -> Codes:
        """For each row the class of its sensitive value."""
        if self.class_of is None:
            return self.sensitive
        return self.class_of.astype(code_type(len(self.classes)))[self.sensitive]

    def by_class(self, histograms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return histograms by sensitive value, in the last axis, by class."""
        if self.class_of is None:
            return histograms
        membership = np.arange(len(self.classes)) == self.class_of[:, None]
        return np.asarray(histograms @ membership, dtype=np.int64)

    @cached_property
    def known_by(self) -> tuple[NDArray[np.int64], NumberSets]:
        """For each row, who knows its person, as `who_knows` says it. O(rows log rows), once."""
        provider = self.provider.astype(np.int64)
        if self.subject is None:
            return provider, NO_SETS
        return who_knows(self.subject, provider, len(self.providers))


def some_rows(whole: CodedTable, rows: NDArray[np.int64], quasi: tuple[Column, ...]) -> CodedTable:
    """Return some rows of a table, with what is published of their quasi-identifiers.

    Sensitive values that do not occur among them are forgotten, as a reader does not see them; who
    knows a person is not.
    """
    sensitive, values = whole.sensitive[rows], whole.sensitive_values
    present = np.bincount(sensitive, minlength=len(values)) > 0
    if not present.all():
        sensitive = (np.cumsum(present) - 1).astype(sensitive.dtype)[sensitive]
        values = tuple(values[code] for code in np.flatnonzero(present).tolist())
    class_of, labels = whole.class_of, whole.class_labels
    if class_of is not None:
        counted, class_of = np.unique(class_of[present], return_inverse=True)
        labels = tuple(labels[code] for code in counted[counted < len(labels)].tolist())
    made = CodedTable(
        quasi=quasi,
        provider=whole.provider[rows],
        providers=whole.providers,
        sensitive=sensitive,
        sensitive_values=values,
        sensitive_kind=whole.sensitive_kind,
        subject=None if whole.subject is None else whole.subject[rows],
        rows=len(rows),
        secrets=tuple(replace(one, codes=one.codes[rows]) for one in whole.secrets),
        class_of=class_of,
        class_labels=labels,
    )
    if whole.subject is not None:
        who, sets = whole.known_by
        made.__dict__["known_by"] = who[rows], sets
    return made


@dataclass(frozen=True, eq=False)
class GroupIndex:
    """The equivalence groups of a table: rows with equal quasi-identifiers.

    Attributes:
        labels: for each row, its group 0..count−1.
        first: for each group, its first row. Groups are numbered in the order of these.
    """

    labels: NDArray[np.int64]
    first: NDArray[np.int64]

    @property
    def count(self) -> int:
        """How many groups there are."""
        return len(self.first)


def code_type(values: int) -> np.dtype[np.signedinteger[Any]]:
    """Return the smallest signed type for codes from −1 (missing) to `values`.

    >>> code_type(15).name, code_type(1000).name
    ('int8', 'int16')
    """
    return np.dtype(np.min_scalar_type(-max(1, values) - 1))


def encode_column(
    frame: ArrowFrame,
    name: str,
    missing: Missing = "error",
    order: Sequence[Any] | None = None,
    hierarchy: Hierarchy | None = None,
    where: Callable[[int], str] | None = None,
) -> Column:
    """Encode one column; `order` declares the order of its values, `where` names a row's place."""
    where = where or frame.where
    values, codes, kind = _distinct(frame.column(name), name)
    lost = int((codes < 0).sum())
    if lost and missing == "error":
        raise missing_cells(name, lost, drop_or_keep_missing(), where(int(np.argmax(codes < 0))))
    if hierarchy is not None and order is None:
        order, kind = hierarchy.leaves, "categorical"
    elif order is not None:
        kind = "ordinal"
    if order is not None:
        values, codes = _reordered(values, codes, order, name, where)
    if kind == "ordinal" and _are_numbers(values):
        kind = "numeric"
    if lost:
        codes = np.where(codes < 0, codes.dtype.type(len(values)), codes)
        values = (*values, None)
    return Column(name, kind, values, codes, hierarchy)


def _are_numbers(values: Sequence[Any]) -> bool:
    """Tell whether values are written numbers, which then lie where they are and not by rank."""
    found = [number(value) if isinstance(value, str) else None for value in values]
    known = [one for one in found if one is not None]
    return len(known) == len(found) and all(a <= b for a, b in pairwise(known))


def merge_spellings(column: Column) -> Column:
    """Join the values that may mean the same: a secret that is spelled in two ways.

    >>> spelled = Column("dose", "categorical", ("0.5", ".50", "1"), np.array([0, 1, 2]))
    >>> merge_spellings(spelled).values, merge_spellings(spelled).codes.tolist()
    (('0.5', '1'), [0, 0, 1])
    """
    if not any(isinstance(value, str) for value in column.values):
        return column
    meanings = list(map(canonical_value, column.values))
    first: dict[Any, int] = {}
    for code, meant in enumerate(meanings):
        if meant not in first or column.values[code] is None:
            first[meant] = code
    kept = sorted(first.values())
    rank = {code: place for place, code in enumerate(kept)}
    recode = np.array([rank[first[meant]] for meant in meanings], dtype=column.codes.dtype)
    return replace(column, values=tuple(column.values[c] for c in kept), codes=recode[column.codes])


def classes_at(column: Column, tree: Hierarchy, level: int, where: Callable[[int], str]) -> Column:
    """Return a sensitive column with its values' labels at a level of their hierarchy.

    >>> tree = Hierarchy.read([("E11", "E*", "*"), ("E11.9", "E*", "*"), ("I10", "I*", "*")])
    >>> icd = Column("icd", "categorical", ("E11", "E11.9", "I10"), np.array([0, 1, 2, 1]))
    >>> found = classes_at(icd, tree, 1, lambda row: "")
    >>> found.values, found.codes.tolist()
    (('E*', 'I*'), [0, 0, 1, 0])
    """
    labels: list[str | None] = []
    for code, value in enumerate(column.values):
        try:
            labels.append(None if value is None else tree.paths[tree.leaf(value)][level])
        except KeyError:
            row = int(np.argmax(column.codes == code))
            raise InvalidInputError(
                f"Column {column.name!r} holds a value{where(row)} that its hierarchy does not "
                "name; add it there."
            ) from None
    known = sorted({label for label in labels if label is not None})
    rank: dict[str | None, int] = {label: place for place, label in enumerate(known)}
    rank |= {None: len(known)}
    recode = np.array([rank[label] for label in labels], dtype=column.codes.dtype)
    values = (*known, None) if None in labels else tuple(known)
    return Column(column.name, "categorical", values, recode[column.codes])


def classes_of(
    sensitive: Codes, values: int, columns: Sequence[Column], count_missing: bool
) -> tuple[NDArray[np.int64], tuple[Any, ...]]:
    """Return the class of each sensitive value, and the labels of the classes.

    `columns` are the sensitive columns, row by row, with the values that count; a combination with
    a missing one, or a word for that, counts as no value, unless these are to be counted.
    """
    codes, labels, _ = encode_product(columns)
    parts = labels if len(columns) > 1 else [(label,) for label in labels]
    counts = [count_missing or not any(map(is_missing, one)) for one in parts]
    number = np.where(counts, np.cumsum(counts) - 1, sum(counts))
    class_of = np.zeros(values, dtype=np.int64)
    class_of[sensitive] = number[codes]
    return class_of, tuple(label for label, one in zip(labels, counts, strict=True) if one)


def match_codes(values: Sequence[Any], onto: Sequence[Any]) -> NDArray[np.int64]:
    """Return for each value the place in `onto` of what may mean the same; −1 for none.

    >>> match_codes(["Flu", "1.0", "x"], [1, "flu"]).tolist()
    [1, 0, -1]
    """
    place = {canonical_value(value): code for code, value in enumerate(onto)}
    return np.array([place.get(canonical_value(value), -1) for value in values], dtype=np.int64)


def encode_product(columns: Sequence[Column]) -> tuple[Codes, tuple[Any, ...], Scale]:
    """Encode several columns as one: the combinations that occur (a Cartesian product)."""
    if len(columns) == 1:
        return columns[0].codes, columns[0].values, columns[0].kind
    index = group_rows([column.codes for column in columns], [len(c.values) for c in columns])
    found = [column.codes[index.first] for column in columns]
    order = np.lexsort(found[::-1])
    rank = np.argsort(order).astype(code_type(len(order)))
    parts = [[c.values[code] for code in f[order]] for c, f in zip(columns, found, strict=True)]
    return rank[index.labels], tuple(zip(*parts, strict=True)), "categorical"


def group_rows(codes: Sequence[NDArray[Any]], sizes: Sequence[int]) -> GroupIndex:
    """Group rows by equal codes in every column. O(rows·columns + rows log rows)."""
    key = np.zeros(len(codes[0]), dtype=np.int64)
    span = 1
    for column, size in zip(codes, sizes, strict=True):
        if span * size >= 2**62:
            key = np.unique(key, return_inverse=True)[1]
            span = int(key.max(initial=0)) + 1
        key = key * size + column
        span *= size
    _, first, labels = np.unique(key, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return GroupIndex(rank[labels], np.sort(first))


def groups_of(encoded: CodedTable) -> GroupIndex:
    """Return the equivalence groups of a table."""
    codes = [column.codes for column in encoded.quasi]
    return group_rows(codes, [len(column.values) for column in encoded.quasi])


def refuse_endless(column: Column, where: Callable[[int], str]) -> None:
    """Refuse numbers between which a width is infinite."""
    if column.kind != "numeric":
        return
    far = np.abs(column.numbers) > _LARGEST
    if far.any():
        row = int(np.argmax(far[column.codes]))
        raise InvalidInputError(
            f"Column {column.name!r} holds a number beyond ±{_LARGEST:g}{where(row)}, and ranges "
            "up to it have no width. Replace it, or make it missing."
        )


def drop_or_keep_missing() -> str:
    """Say what to do about cells without a value."""
    value = argument("missing", "value")
    return f"drop those rows, or let missing be a value of its own with {value}"


def missing_cells(name: str, number: int, remedy: str, where: str = "") -> InvalidInputError:
    """Return the refusal of a column with missing values, the first of which is `where`.

    >>> str(missing_cells("age", 1200, "drop those rows", " in row 1"))
    "Column 'age' has 1,200 missing values, the first in row 1; drop those rows."
    """
    values = f"{number:,} missing value{'' if number == 1 else 's'}"
    first = f", the first{where}" if where else ""
    return InvalidInputError(f"Column {name!r} has {values}{first}; {remedy}.")


def encode_names(frame: ArrowFrame, name: str, role: str) -> Column:
    """Encode a column that names who a record is of; it must be named."""
    column = encode_column(frame, name, "value")
    if column.values[-1] is None:
        lost = column.codes == len(column.values) - 1
        remedy = f"every record needs a {role}: fill it in, or drop those rows"
        raise missing_cells(name, int(lost.sum()), remedy, frame.where(int(np.argmax(lost))))
    refuse_respelled(column, role, frame.where)
    refuse_written_apart(frame, column)
    return column


def refuse_written_apart(frame: ArrowFrame, column: Column) -> None:
    """Refuse equal values that are written apart: readers see more groups than are counted."""
    if all(value is None or isinstance(value, str) for value in column.values):
        return
    if (row := frame.written_apart(column.name, column.codes)) is not None:
        raise InvalidInputError(
            f"Column {column.name!r} holds equal values that are written apart, as 31 and 31.0 or "
            f"0.0 and -0.0 are, such as that{frame.where(row)}; write each value in one way, or "
            "make the column text."
        )


def refuse_respelled(column: Column, role: str, where: Callable[[int], str]) -> None:
    """Refuse names that may be one: taken as one or as two, a table may look safer than it is."""
    joined = merge_spellings(column)
    if len(joined.values) == len(column.values):
        return
    meant = np.zeros(len(column.values), dtype=np.int64)
    meant[column.codes] = joined.codes
    again = np.flatnonzero(np.bincount(meant)[meant] > 1)[-1]
    raise InvalidInputError(
        f"Column {column.name!r} may name one {role} in several spellings, such as that"
        f"{where(int(np.argmax(column.codes == again)))}; spell each name in one way, or number "
        "them."
    )


def _distinct(array: Any, name: str) -> tuple[tuple[Any, ...], Codes, Scale]:
    """Return the sorted distinct values, codes with −1 for missing, and the kind."""
    pa = arrow()
    import pyarrow.compute as pc

    order: list[Any] | None = None
    if pa.types.is_dictionary(array.type):
        if array.type.ordered:
            order = array.dictionary.to_pylist()
        array = array.cast(array.type.value_type)
    if pa.types.is_null(array.type):
        return (), np.full(len(array), -1, dtype=np.int8), "categorical"
    if pa.types.is_floating(array.type):
        array = pc.add(array.cast(pa.float64()), 0.0)  # −0.0 and 0.0 are one secret
        array = pc.if_else(pc.is_nan(array), None, array)
    try:
        encoded = array.dictionary_encode()
        found = encoded.dictionary
        indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        place = _sorting(found, pa)
    except (pa.ArrowException, TypeError):
        raise InvalidInputError(
            f"Column {name!r} holds values of type {array.type}, which have no order here; make "
            "them numbers or text."
        ) from None
    rank = np.empty(len(found) + 1, dtype=code_type(len(found)))
    rank[place] = np.arange(len(found))
    rank[-1] = -1
    values = tuple(found.take(pa.array(place)).to_pylist())
    codes: Codes = rank[indices]
    if order is not None:
        values, codes = _reordered(values, codes, order, name)
    return values, codes, "ordinal" if order is not None else _kind(array.type, pa)


def _sorting(found: Any, pa: Any) -> NDArray[np.int64]:
    if pa.types.is_integer(found.type) or pa.types.is_floating(found.type):
        return np.argsort(found.to_numpy(zero_copy_only=False), kind="stable")
    values = found.to_pylist()
    return np.array(sorted(range(len(values)), key=values.__getitem__), dtype=np.int64)


def _kind(kind: Any, pa: Any) -> Scale:
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "numeric"
    return "ordinal" if pa.types.is_temporal(kind) else "categorical"


def _reordered(
    values: tuple[Any, ...],
    codes: Codes,
    order: Sequence[Any],
    name: str,
    where: Callable[[int], str] = lambda row: "",
) -> tuple[tuple[Any, ...], Codes]:
    """Put the values that occur in the declared order."""
    place = {value: i for i, value in enumerate(order)}
    if len(place) < len(order):
        raise InvalidInputError(f"The order declared for column {name!r} names a value twice.")
    # Numbers and dates may be declared as they are written, as hierarchies do.
    texts = {value: leaf_text(value) for value in values if value not in place}
    place |= {value: place[text] for value, text in texts.items() if text in place}
    unknown = [code for code, value in enumerate(values) if value not in place]
    if unknown:
        row = int(np.argmax(np.isin(codes, unknown)))
        raise InvalidInputError(
            f"Column {name!r} holds a value{where(row)} that its declared order or hierarchy does "
            "not name; add it there."
        )
    ranks = np.array([place[value] for value in values], dtype=np.int64)
    sorting = np.argsort(ranks, kind="stable")
    rank = np.empty(len(values) + 1, dtype=code_type(len(values)))
    rank[sorting] = np.arange(len(values))
    rank[-1] = -1
    return tuple(values[i] for i in sorting), rank[codes]
