"""Columns as integer codes: the arrays that this room computes on.

A column becomes its distinct values in order, and one code per row in the smallest integer type
that holds them. Cost: one hash table per column, O(rows), plus a sort of the distinct values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.delimited import unescape_formula
from quiltwork.errors import InvalidInputError
from quiltwork.tables.codes.distinct import NO_SETS, NumberSets, knowing_providers
from quiltwork.tables.codes.hierarchies import Hierarchy, leaf_text
from quiltwork.tables.input.canonical_values import canonical_value, is_missing, number
from quiltwork.tables.input.frames import ArrowFrame, arrow
from quiltwork.wording import argument

Scale: TypeAlias = Literal["numeric", "ordinal", "categorical"]
Missing: TypeAlias = Literal["error", "value"]
Codes: TypeAlias = NDArray[np.signedinteger[Any]]
_LARGEST = 1e300  # beyond, the width of a range can overflow to infinity


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table.

    Attributes:
        name: the column's name.
        kind: "numeric" (values ascend), "ordinal" (declared order, or dates) or "categorical"
            (sorted, or in the order of the hierarchy's leaves).
        values: the distinct values in order; a missing value is None, last. Numbers may be texts,
            as a file spells them.
        codes: for each row, the index into `values`.
        hierarchy: the user's generalization hierarchy, if there is one.
    """

    name: str
    kind: Scale
    values: tuple[Any, ...]
    codes: Codes
    hierarchy: Hierarchy | None = None

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The values of a numeric column as floats, with NaN for a missing one."""
        return np.array([np.nan if v is None else float(v) for v in self.values])

    @property
    def unordered(self) -> bool:
        """Whether groups publish sets of its values: there is neither an order nor a hierarchy."""
        return self.kind == "categorical" and self.hierarchy is None

    @cached_property
    def positions(self) -> NDArray[np.float64]:
        """The position of each code between the smallest (0) and the largest (1) value."""
        if self.kind == "numeric" and self.hierarchy is None:
            present = self.numbers[~np.isnan(self.numbers)]
            # A column of missing values only has no range; all positions are 0 then.
            low, high = (present[0], present[-1]) if len(present) else (0.0, 0.0)
            # A missing value is as far from every number as they can be from each other.
            filled = np.where(np.isnan(self.numbers), 2 * high - low, self.numbers) - low
        else:
            filled = np.arange(len(self.values), dtype=np.float64)
        span = float(filled[-1]) if len(filled) else 0.0
        return filled / span if span > 0 else np.zeros(len(filled))


@dataclass(frozen=True, eq=False)
class CodedTable:
    """A table as arrays of codes.

    Attributes:
        quasi: the quasi-identifiers.
        provider: for each row, the index into `providers`.
        providers: the labels of the providers, sorted.
        sensitive: for each row, the index into `sensitive_values`.
        sensitive_values: the values that occur, or tuples of them for several sensitive columns.
        sensitive_kind: the order of the values; "categorical" for several columns.
        subject: for each row, the person it is about; None if every row is another person.
        rows: the number of rows.
        secrets: the sensitive columns one by one, as they are spelled.
        class_of: for each sensitive value, the class that constraints count it as; the number of
            classes if it counts as no value. None: every value is its own class.
        class_labels: the labels of the classes, if `class_of` is set.
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
        """The sensitive columns in which some value has several spellings, counted as one."""
        return [
            column.name
            for column in self.secrets
            if len(merge_spellings(column).values) < len(column.values)
        ]

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels of the classes that constraints count as sensitive values."""
        return self.sensitive_values if self.class_of is None else self.class_labels

    @cached_property
    def row_classes(self) -> Codes:
        """For each row, the class of its sensitive value."""
        if self.class_of is None:
            return self.sensitive
        return self.class_of.astype(code_type(len(self.classes)))[self.sensitive]

    def by_class(self, histograms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum histograms by sensitive value (last axis) to histograms by class."""
        if self.class_of is None:
            return histograms
        membership = np.arange(len(self.classes)) == self.class_of[:, None]
        return np.asarray(histograms @ membership, dtype=np.int64)

    @cached_property
    def known_by(self) -> tuple[NDArray[np.int64], NumberSets]:
        """The providers that know each row's person (`knowing_providers`). O(rows log rows)."""
        provider = self.provider.astype(np.int64)
        if self.subject is None:
            return provider, NO_SETS
        return knowing_providers(self.subject, provider, len(self.providers))


def take_rows(coded: CodedTable, rows: NDArray[np.int64], quasi: tuple[Column, ...]) -> CodedTable:
    """Return some rows of a table, with their published quasi-identifiers.

    Sensitive values that do not occur among the rows are dropped, since a reader does not see them;
    which providers know a person is kept, since they learned that from all rows.
    """
    sensitive, values = coded.sensitive[rows], coded.sensitive_values
    present = np.bincount(sensitive, minlength=len(values)) > 0
    if not present.all():
        sensitive = (np.cumsum(present) - 1).astype(sensitive.dtype)[sensitive]
        values = tuple(values[code] for code in np.flatnonzero(present).tolist())
    class_of, labels = coded.class_of, coded.class_labels
    if class_of is not None:
        kept_classes, class_of = np.unique(class_of[present], return_inverse=True)
        labels = tuple(labels[code] for code in kept_classes[kept_classes < len(labels)].tolist())
    part = CodedTable(
        quasi=quasi,
        provider=coded.provider[rows],
        providers=coded.providers,
        sensitive=sensitive,
        sensitive_values=values,
        sensitive_kind=coded.sensitive_kind,
        subject=None if coded.subject is None else coded.subject[rows],
        rows=len(rows),
        secrets=tuple(replace(column, codes=column.codes[rows]) for column in coded.secrets),
        class_of=class_of,
        class_labels=labels,
    )
    # Set, not recomputed: a provider knows a person also by rows that are not taken.
    if coded.subject is not None:
        knowers, sets = coded.known_by
        part.__dict__["known_by"] = knowers[rows], sets
    return part


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
        """The number of groups."""
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
    """Encode one column.

    Args:
        frame: the rows.
        name: the column.
        missing: "error" refuses missing values; "value" makes them a value of their own.
        order: the declared order of the values.
        hierarchy: the column's hierarchy, whose leaves are the order.
        where: returns the position of a row as text, for messages.
    """
    where = where or frame.where
    values, codes, kind = _distinct(frame.column(name), name)
    missing_rows = int((codes < 0).sum())
    if missing_rows and missing == "error":
        raise missing_cells(name, missing_rows, missing_remedy(), where(int(np.argmax(codes < 0))))
    if hierarchy is not None and order is None:
        order, kind = hierarchy.leaves, "categorical"
    elif order is not None:
        kind = "ordinal"
    if order is not None:
        values, codes = _reordered(values, codes, order, name, where)
    # Files keep decimal numbers as texts in order; their distances are those of the numbers.
    if kind == "ordinal" and _are_numbers(values):
        kind = "numeric"
    if missing_rows:
        codes = np.where(codes < 0, codes.dtype.type(len(values)), codes)
        values = (*values, None)
    return Column(name, kind, values, codes, hierarchy)


def _are_numbers(values: Sequence[Any]) -> bool:
    """Return whether all values are written numbers, ascending: positions are then their sizes."""
    numbers = [number(value) if isinstance(value, str) else None for value in values]
    present = [n for n in numbers if n is not None]
    return len(present) == len(numbers) and all(a <= b for a, b in pairwise(present))


def merge_spellings(column: Column) -> Column:
    """Merge the values whose canonical values agree: one secret in several spellings.

    >>> spelled = Column("dose", "categorical", ("0.5", ".50", "1"), np.array([0, 1, 2]))
    >>> merge_spellings(spelled).values, merge_spellings(spelled).codes.tolist()
    (('0.5', '1'), [0, 0, 1])
    """
    if not any(isinstance(value, str) for value in column.values):
        return column
    canonical = list(map(canonical_value, column.values))
    first: dict[Any, int] = {}
    for code, key in enumerate(canonical):
        if key not in first or column.values[code] is None:
            first[key] = code
    codes_kept = sorted(first.values())
    rank = {code: place for place, code in enumerate(codes_kept)}
    recode = np.array([rank[first[key]] for key in canonical], dtype=column.codes.dtype)
    return replace(
        column, values=tuple(column.values[c] for c in codes_kept), codes=recode[column.codes]
    )


def classes_at(column: Column, tree: Hierarchy, level: int, at_row: Callable[[int], str]) -> Column:
    """Replace the values of a sensitive column by their labels at a level of the hierarchy.

    A value without a line of its own is looked up by its canonical value, and labels that differ
    in spelling only are merged, as sensitive values are without a hierarchy: `e11` is `E11`. Words
    for missing values are missing.

    >>> tree = Hierarchy.read([("E11", "E*", "*"), ("E11.9", "E*", "*"), ("I10", "I*", "*")])
    >>> icd = Column("icd", "categorical", ("E11", "E11.9", "I10"), np.array([0, 1, 2, 1]))
    >>> chapters = classes_at(icd, tree, 1, lambda row: "")
    >>> chapters.values, chapters.codes.tolist()
    (('E*', 'I*'), [0, 0, 1, 0])
    """
    labels: list[str | None] = []
    leaf_of = {canonical_value(leaf): place for leaf, place in tree.place_of.items()}
    for code, value in enumerate(column.values):
        # Published files may have an apostrophe before values that look like formulas.
        plain = unescape_formula(value) if isinstance(value, str) else value
        if is_missing(plain):
            labels.append(None)
            continue
        try:
            leaf = tree.leaf(value if str(value) in tree.place_of else plain)
        except KeyError:
            leaf = leaf_of.get(canonical_value(plain), -1)
        if leaf >= 0:
            labels.append(tree.paths[leaf][level])
        else:
            row = int(np.argmax(column.codes == code))
            raise InvalidInputError(
                f"Column {column.name!r} has a value{at_row(row)} that is not in its hierarchy; "
                "add a line for it."
            )
    distinct = sorted({label for label in labels if label is not None})
    rank: dict[str | None, int] = {label: place for place, label in enumerate(distinct)}
    rank |= {None: len(distinct)}
    recode = np.array([rank[label] for label in labels], dtype=column.codes.dtype)
    values = (*distinct, None) if None in labels else tuple(distinct)
    at_level = Column(column.name, "categorical", values, recode[column.codes])
    return merge_spellings(at_level)


def classes_of(
    sensitive: Codes, values: int, columns: Sequence[Column], count_missing: bool
) -> tuple[NDArray[np.int64], tuple[Any, ...]]:
    """Return the class of each sensitive value, and the labels of the classes.

    `columns` are the sensitive columns with the values that constraints count. A combination with a
    missing value, or a word for one, counts as no value unless `count_missing`.
    """
    codes, labels, _ = encode_product(columns)
    combinations = labels if len(columns) > 1 else [(label,) for label in labels]
    is_value = [
        count_missing or not any(map(is_missing, combination)) for combination in combinations
    ]
    class_number = np.where(is_value, np.cumsum(is_value) - 1, sum(is_value))
    class_of = np.zeros(values, dtype=np.int64)
    # All rows of one sensitive value have the same class, so the last one written is right.
    class_of[sensitive] = class_number[codes]
    return class_of, tuple(
        label for label, combination in zip(labels, is_value, strict=True) if combination
    )


def match_codes(values: Sequence[Any], onto: Sequence[Any]) -> NDArray[np.int64]:
    """Return, for each value, the index in `onto` of an equal canonical value; −1 if there is none.

    >>> match_codes(["Flu", "1.0", "x"], [1, "flu"]).tolist()
    [1, 0, -1]
    """
    index_of = {canonical_value(value): code for code, value in enumerate(onto)}
    return np.array([index_of.get(canonical_value(value), -1) for value in values], dtype=np.int64)


def encode_product(columns: Sequence[Column]) -> tuple[Codes, tuple[Any, ...], Scale]:
    """Encode several columns as one: the combinations that occur."""
    if len(columns) == 1:
        return columns[0].codes, columns[0].values, columns[0].kind
    index = group_rows([column.codes for column in columns], [len(c.values) for c in columns])
    first_codes = [column.codes[index.first] for column in columns]
    order = np.lexsort(first_codes[::-1])
    rank = np.argsort(order).astype(code_type(len(order)))
    parts = [
        [c.values[code] for code in f[order]] for c, f in zip(columns, first_codes, strict=True)
    ]
    return rank[index.labels], tuple(zip(*parts, strict=True)), "categorical"


def group_rows(codes: Sequence[NDArray[Any]], sizes: Sequence[int]) -> GroupIndex:
    """Group rows by equal codes in all columns. O(rows·columns + rows log rows)."""
    key = np.zeros(len(codes[0]), dtype=np.int64)
    span = 1
    for column, size in zip(codes, sizes, strict=True):
        # Keep the key within 64 bits: renumber the combinations that occur so far.
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


def refuse_huge_numbers(column: Column, at_row: Callable[[int], str]) -> None:
    """Refuse numbers so large that the width of a range would be infinite."""
    # Only numbers have widths that can overflow.
    if column.kind != "numeric":
        return
    too_large = np.abs(column.numbers) > _LARGEST
    if too_large.any():
        row = int(np.argmax(too_large[column.codes]))
        raise InvalidInputError(
            f"Column {column.name!r} has a number beyond ±{_LARGEST:g}{at_row(row)}, so that "
            "ranges have no finite width. Replace it, or make the cell missing."
        )


def missing_remedy() -> str:
    """Return what to do about cells without a value."""
    value = argument("missing", "value")
    return f"drop those rows, or make missing a value of its own with {value}"


def missing_cells(name: str, number: int, remedy: str, where: str = "") -> InvalidInputError:
    """Return the refusal of a column with missing values, the first of which is `where`.

    >>> str(missing_cells("age", 1200, "drop those rows", " in row 1"))
    "Column 'age' has 1,200 missing values, the first in row 1; drop those rows."
    """
    values = f"{number:,} missing value{'' if number == 1 else 's'}"
    first = f", the first{where}" if where else ""
    return InvalidInputError(f"Column {name!r} has {values}{first}; {remedy}.")


def encode_names(frame: ArrowFrame, name: str, role: str) -> Column:
    """Encode a column that names providers or subjects; every record needs a name."""
    column = encode_column(frame, name, "value")
    if column.values[-1] is None:
        is_missing_row = column.codes == len(column.values) - 1
        remedy = f"every record needs a {role}: fill them in, or drop those rows"
        raise missing_cells(
            name, int(is_missing_row.sum()), remedy, frame.where(int(np.argmax(is_missing_row)))
        )
    refuse_ambiguous_names(column, role, frame.where)
    refuse_unequal_spellings(frame, column)
    return column


def refuse_unequal_spellings(frame: ArrowFrame, column: Column) -> None:
    """Refuse equal values in different spellings: readers would see more groups than we count."""
    # Texts are equal only if they are spelled alike.
    if all(value is None or isinstance(value, str) for value in column.values):
        return
    if (row := frame.written_apart(column.name, column.codes)) is not None:
        raise InvalidInputError(
            f"Column {column.name!r} has equal values written in different ways, such as 31 and "
            f"31.0 or 0.0 and -0.0; see the one{frame.where(row)}. Write each value in one way, or "
            "make the column text."
        )


def refuse_ambiguous_names(column: Column, role: str, at_row: Callable[[int], str]) -> None:
    """Refuse names whose canonical values agree.

    Counted as one name or as two, the table might look safer than it is.
    """
    merged = merge_spellings(column)
    if len(merged.values) == len(column.values):
        return
    merged_code = np.zeros(len(column.values), dtype=np.int64)
    merged_code[column.codes] = merged.codes
    repeated = np.flatnonzero(np.bincount(merged_code)[merged_code] > 1)[-1]
    raise InvalidInputError(
        f"Column {column.name!r} seems to name one {role} in several spellings, such as the one"
        f"{at_row(int(np.argmax(column.codes == repeated)))}. Spell each name in one way, or use "
        "numbers."
    )


def _distinct(array: Any, name: str) -> tuple[tuple[Any, ...], Codes, Scale]:
    """Return the sorted distinct values of an Arrow array, codes (−1: missing), and the kind."""
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
        array = pc.add(array.cast(pa.float64()), 0.0)  # −0.0 becomes 0.0: they are one value
        array = pc.if_else(pc.is_nan(array), None, array)
    try:
        encoded = array.dictionary_encode()
        dictionary = encoded.dictionary
        # Index −1 addresses the last entry of `rank` below, which is −1 for missing.
        indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        sorting = _sorting(dictionary, pa)
    except (pa.ArrowException, TypeError):
        raise InvalidInputError(
            f"Column {name!r} has values of type {array.type}, which cannot be ordered. Convert "
            "them to numbers or text."
        ) from None
    rank = np.empty(len(dictionary) + 1, dtype=code_type(len(dictionary)))
    rank[sorting] = np.arange(len(dictionary))
    rank[-1] = -1
    values = tuple(dictionary.take(pa.array(sorting)).to_pylist())
    codes: Codes = rank[indices]
    if order is not None:
        values, codes = _reordered(values, codes, order, name)
    return values, codes, "ordinal" if order is not None else _kind(array.type, pa)


def _sorting(distinct: Any, pa: Any) -> NDArray[np.int64]:
    """Return the order that sorts an Arrow array of distinct values."""
    if pa.types.is_integer(distinct.type) or pa.types.is_floating(distinct.type):
        return np.argsort(distinct.to_numpy(zero_copy_only=False), kind="stable")
    values = distinct.to_pylist()
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
    at_row: Callable[[int], str] = lambda row: "",
) -> tuple[tuple[Any, ...], Codes]:
    """Renumber the values that occur in the declared order."""
    rank_of = {value: i for i, value in enumerate(order)}
    if len(rank_of) < len(order):
        raise InvalidInputError(
            f"The declared order of column {name!r} names a value twice; remove one."
        )
    # Numbers and dates may be declared as texts, as in the lines of a hierarchy.
    texts = {value: leaf_text(value).strip() for value in values if value not in rank_of}
    rank_of |= {value: rank_of[text] for value, text in texts.items() if text in rank_of}
    unknown = [code for code, value in enumerate(values) if value not in rank_of]
    if unknown:
        row = int(np.argmax(np.isin(codes, unknown)))
        raise InvalidInputError(
            f"Column {name!r} has a value{at_row(row)} that is not in its declared order or "
            "hierarchy; add it there."
        )
    ranks = np.array([rank_of[value] for value in values], dtype=np.int64)
    sorting = np.argsort(ranks, kind="stable")
    rank = np.empty(len(values) + 1, dtype=code_type(len(values)))
    rank[sorting] = np.arange(len(values))
    rank[-1] = -1
    return tuple(values[i] for i in sorting), rank[codes]
