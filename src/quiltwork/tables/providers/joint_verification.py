"""Joint verification: are agreed boxes m-private, without a row leaving its provider?

The boxes (groups) are public and disjoint. Each provider counts its own rows in them, and only sums
over all providers are opened. These are: for every box and t = 1, …, k, the number of providers
with at least t rows there; for every box and salted hash of a sensitive value, the number of
providers that have it; and where these leave distinct l-diversity undecided, the number of
providers with at least t values that at most m providers hold. None of them names a provider.
k-anonymity is decided exactly, l exactly for m = 1 and by a bound for larger m, which may say "not
shown" of a private table and never "private" of another.

Sums are opened by additive secret sharing modulo 2^64: every provider gives every other a share, a
seed from the operating system that expands to random numbers (SHAKE-256), and publishes its numbers
plus the shares received minus the shares given. The sum of what is published is the sum of the
numbers. All providers follow the protocol (semi-honest); what two or more learn together is what
they could compute by subtraction. Cost: boxes × (k + BUCKETS) numbers from each provider.

Theorem: docs/theory/joint-verification.md
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import permutations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quiltwork import files
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import integer
from quiltwork.results import ResultBase
from quiltwork.tables.codes.encoding import group_rows
from quiltwork.tables.constraints.constraint import Constraint, as_constraint, parse_m
from quiltwork.tables.generalization.published_texts import fitting_groups
from quiltwork.tables.input.canonical_values import canonical_value
from quiltwork.tables.input.frames import arrow, open_frame
from quiltwork.tables.providers.own_rows import refuse_subjects
from quiltwork.tables.table import Table, as_table
from quiltwork.wording import argument

BUCKETS = 1024
"""The number of hash buckets for sensitive values; values in one bucket count as one."""
MOST_NUMBERS = 20_000_000
"""The most numbers that each provider publishes: 160 MB."""
Words = NDArray[np.uint64]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class JointVerdict(ResultBase):
    """The result of a joint verification.

    Attributes:
        private: whether every box withstands m colluding providers; False: not, or not shown.
        boxes: the number of boxes with rows.
        failing: the boxes that are not shown to withstand them.
        constraint, m: what was verified.
    """

    private: bool
    boxes: int
    failing: tuple[tuple[str, ...], ...]
    constraint: str
    m: int

    def explain(self) -> str:
        """Return the result in a sentence."""
        guarantee = f"{self.constraint}, whichever {self.m} collude"
        if self.m < 2:
            guarantee = f"{self.constraint} against {'any provider' if self.m else 'outsiders'}"
        if self.private:
            return f"Private: all {self.boxes:,} boxes with rows keep {guarantee}."
        share = f"{len(self.failing):,} of {self.boxes:,} boxes"
        return (
            f"Not shown: {share} may not keep {guarantee}, such as ({', '.join(self.failing[0])})."
        )


class Step(NamedTuple):
    """The result of one call: files written, files still missing, and the verdict."""

    written: tuple[Path, ...]
    missing: tuple[str, ...]
    verdict: JointVerdict | None


@dataclass(frozen=True, eq=False)
class Agreement:
    """What all providers must agree on before they begin.

    Attributes:
        providers: the names of all providers, at least three.
        boxes: a table whose rows with equal quasi-identifiers are the boxes, such as a published
            one.
        constraint: k-anonymity, distinct l-diversity or both.
        m: how many providers may collude.
        salt: a secret of the providers; sensitive values are hashed with it.
    """

    providers: tuple[str, ...]
    boxes: Table
    constraint: Constraint
    m: int
    salt: bytes

    def __post_init__(self) -> None:
        names = set(self.providers)
        if len(names) < 3 or len(names) < len(self.providers):
            raise InvalidInputError(
                "Name at least three providers, each once: of two, each would learn the other's "
                "numbers."
            )
        are_printable = (isinstance(name, str) and name.isprintable() for name in names)
        if not all(are_printable) or any(not name or Path(name).name != name for name in names):
            raise InvalidInputError(
                "Names of providers become file names, and one is not valid as such; rename that "
                "provider."
            )
        pairs = {f"{giver}-{taker}".casefold() for giver, taker in permutations(names, 2)}
        # With providers a and a-a, the name a-a-a.share would be ambiguous.
        if len(pairs) < len(names) * (len(names) - 1):
            raise InvalidInputError("Two shares would have the same file name; rename a provider.")
        if not isinstance(self.salt, bytes) or len(self.salt) < 16:
            raise InvalidInputError(
                "The salt needs at least 16 random bytes, known to the providers alone."
            )
        parse_m(self.m)
        if not as_constraint(self.constraint).counts_alone:
            raise UnsupportedError(
                "Only k-anonymity and distinct l-diversity can be verified jointly; leave others "
                "out."
            )
        if (size := self.boxes.groups.count * (self.k + BUCKETS)) > MOST_NUMBERS:
            raise UnsupportedError(
                f"{size:,} numbers from each provider are too many; use fewer boxes or a smaller k."
            )

    @property
    def k(self) -> int:
        """The number of records that a box needs."""
        return self.constraint.records_asked

    @property
    def values(self) -> int:
        """The number of sensitive values that a box needs; 0 without distinct l-diversity."""
        # 1-diversity does ask for something: a record whose value is missing has no value.
        return 0 if as_constraint(self.constraint).records_alone else self.constraint.values_asked

    @property
    def names(self) -> list[tuple[str, ...]]:
        """The texts of the boxes, in the order in which all providers number them."""
        return sorted(self._of_box(g) for g in range(self.boxes.groups.count))

    def _of_box(self, group: int) -> tuple[str, ...]:
        return tuple(map(str, self.boxes.group_values(group)))

    def digest(self, own: Table) -> str:
        """Return the digest in every file, by which files of another agreement are refused.

        If values are counted, all providers must count those of the same columns in the same way.
        """
        columns: list[Any] = [self.boxes.quasi_identifiers, []]
        if self.values:
            # Providers that count other columns or levels would verify different values.
            columns[1] = [*own.sensitive, sorted(own.levels.items()), own.count_missing]
        parameters = [self.k, self.values, self.m, BUCKETS]
        text = json.dumps([sorted(self.providers), columns, self.names, parameters])
        return hmac.new(self.salt, text.encode(), hashlib.sha256).hexdigest()

    def bucket(self, value: Any) -> int:
        """Return the salted hash bucket of a sensitive value."""
        text = _canonical(canonical_value(value))
        digest = hmac.new(self.salt, text.encode(), hashlib.sha256).digest()
        return int.from_bytes(digest[:8], "big") % BUCKETS

    def counted(self, own: Table, left_out: int) -> Counts:
        """Return the own rows by box and bucket; the last column counts rows without a value."""
        if set(own.quasi_identifiers) != set(self.boxes.quasi_identifiers):
            raise InvalidInputError(
                "The boxes and your rows must have the same quasi-identifiers. Name the columns "
                "alike."
            )
        refuse_subjects(own)
        encoded = own.encoded
        sizes = [len(column.values) for column in encoded.quasi]
        columns = [*(column.codes for column in encoded.quasi), encoded.sensitive]
        row_kinds = group_rows(columns, [*sizes, len(encoded.sensitive_values)])
        weight = np.bincount(row_kinds.labels, minlength=row_kinds.count)
        row, box = fitting_groups(self.boxes, own, row_kinds.first)
        boxes_of_kind = np.bincount(row, minlength=row_kinds.count)
        if (boxes_of_kind > 1).any():
            raise InvalidInputError(
                "Boxes overlap: some of your rows are in several of them. Agree on disjoint boxes, "
                "as anonymize makes them with boxes='disjoint' (--boxes disjoint)."
            )
        in_no_box = int(weight[boxes_of_kind == 0].sum())
        if in_no_box > left_out:
            raise InvalidInputError(
                f"{in_no_box:,} of your rows are in no box, or under labels that are not "
                "understood. Declare hierarchies and orders, or pass "
                f"{argument('left_out', in_no_box)} if they "
                "are not to be published."
            )
        order = {name: place for place, name in enumerate(self.names)}
        place_of = np.array([order[self._of_box(g)] for g in range(len(order))])
        bucket_of = np.array([*map(self.bucket, encoded.classes), BUCKETS])
        counts = np.zeros((len(order), BUCKETS + 1), dtype=np.int64)
        cells = (place_of[box], bucket_of[encoded.row_classes[row_kinds.first[row]]])
        np.add.at(counts, cells, weight[row])
        return counts


def _canonical(value: Any) -> str:
    """Return a canonical value as text, equal for all providers."""
    if isinstance(value, tuple):
        return f"({','.join(map(_canonical, value))})"
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        text = "".join(map(str, digits)).rstrip("0")
        return f"{sign}:{text}e{int(exponent) + len(digits) - len(text)}" if value else "0"
    return json.dumps(value)


def read_boxes(source: Any, quasi_identifiers: Sequence[str], text: Sequence[str] = ()) -> Table:
    """Return the boxes of a frame or file: one for each combination of quasi-identifiers."""
    frame = open_frame(source, text)
    columns = frame.names
    if absent := [name for name in quasi_identifiers if list(columns).count(name) != 1]:
        raise InvalidInputError(f"The boxes must have exactly one column {absent[0]!r}.")
    table = frame.arrow(quasi_identifiers)
    name = "box"
    while name in quasi_identifiers:
        name += "_"
    no_value = arrow().array([""] * table.num_rows)
    with_value = table.append_column(name, no_value)
    return Table(with_value, None, quasi_identifiers, name, missing="value")


def take_step(
    agreed: Agreement, me: str, own: Table, folder: str | Path, left_out: int = 0
) -> Step:
    """Do the next step that the files in the folder permit; call it until there is a verdict.

    Writes `me-other.share`, each for one other provider alone, then `me.counts` and, if needed,
    `me.rare`, both for all others; each is written once. Put the files from others into the same
    folder.

    Raises:
        InvalidInputError: if rows do not fit the boxes, or a file is damaged, of another agreement
            or of another run.
    """
    if me not in agreed.providers:
        raise InvalidInputError(
            f"{me!r} is not one of the providers: {', '.join(agreed.providers)}."
        )
    counts = agreed.counted(as_table(own), integer(left_out, "left_out", 0))
    target, others = files.as_path(f"{folder}/{me}").parent, sorted({*agreed.providers} - {me})
    with suppress(OSError):  # a failed write reports the reason
        # Shares are secrets: the folder is readable by its owner alone.
        target.mkdir(0o700, exist_ok=True)
    run = _Run(agreed.digest(own), me, target, others)
    run.refuse_other_agreements()
    written = [run.write_share(other) for other in run.others if not run.share(me, other).exists()]
    shares = [run.share(other, me) for other in run.others]
    if missing := tuple(path.name for path in shares if not path.exists()):
        return Step(tuple(written), missing, None)
    sums, step = run.opened("counts", first_numbers(agreed, counts), written)
    if sums is None:
        return step
    sums_of_counts = OpenedSums(agreed, sums)
    if not sums_of_counts.open:
        return step._replace(verdict=sums_of_counts.verdict(()))
    sums, next_step = run.opened("rare", sums_of_counts.second_numbers(counts), step.written)
    return (
        next_step
        if sums is None
        else next_step._replace(verdict=sums_of_counts.verdict(sums_of_counts.unshown(sums)))
    )


@dataclass(frozen=True, eq=False)
class _Run:
    """One provider's side of a run."""

    digest: str
    me: str
    folder: Path
    others: Sequence[str]

    def share(self, giver: str, taker: str) -> Path:
        return self.folder / f"{giver}-{taker}.share"

    def write_share(self, other: str) -> Path:
        # Written once: a second seed for the same run would reveal differences.
        return self._write(self.share(self.me, other), "share", {"seed": secrets.token_hex(32)})

    def refuse_other_agreements(self) -> None:
        """Refuse files of another agreement at once: waiting for the rest would be in vain."""
        for other in self.others:
            for path in (self.share(self.me, other), self.share(other, self.me)):
                if path.exists():
                    self._read(path, "share", "seed")
        for name, kind in product((self.me, *self.others), ("counts", "rare")):
            if (path := self.folder / f"{name}.{kind}").exists():
                self._read(path, kind, "numbers")

    def _write(self, path: Path, kind: str, body: dict[str, Any]) -> Path:
        document = {"kind": kind, "agreed": self.digest, **body}
        files.write(path, files.dump("joint", 1, document), files.OWNER_ONLY)
        return path

    def _read(self, path: Path, kind: str, field: str) -> str:
        """Return a field of a file, if the file belongs to this agreement."""
        document = files.load(files.read_bytes(path), "joint", (1,))
        if (document.get("kind"), document.get("agreed")) != (kind, self.digest):
            files_of = {self.share(n, self.me): n for n in self.others}
            files_of |= {self.folder / f"{n}.{kind}": n for n in self.others}
            whose, remedy = "your own file", "All providers must begin again with empty folders."
            if path in files_of:
                whose = f"from {files_of[path]}"
                remedy = f"Ask {files_of[path]} for the file of this agreement."
            raise InvalidInputError(
                f"{path.name!r}, {whose}, was made for other boxes, columns, providers, "
                f"constraints or salt. {remedy}"
            )
        if not isinstance(document.get(field), str):
            raise InvalidInputError(
                f"{path.name!r} is damaged: it has no {field}. Ask for it again."
            )
        return str(document[field])

    def _mask(self, giver: str, taker: str, kind: str, size: int) -> Words:
        """Expand the seed of a share to its numbers."""
        seed = self._read(self.share(giver, taker), "share", "seed")
        # The kind is part of the input, so that counts and rare values have independent masks.
        stream = hashlib.shake_256(f"{kind} {giver} {taker} {seed}".encode()).digest(8 * size)
        return np.frombuffer(stream, dtype="<u8").astype(np.uint64)

    def opened(
        self, kind: str, numbers: NDArray[np.bool_], written: Sequence[Path]
    ) -> tuple[Counts | None, Step]:
        """Publish own numbers behind shares; return the sums once all have published."""
        path, size = self.folder / f"{self.me}.{kind}", numbers.size
        files_written, masked = [*written], numbers.ravel().astype(np.uint64)
        for other in self.others:
            masked += self._mask(other, self.me, kind, size)
            masked -= self._mask(self.me, other, kind, size)
        # Published numbers are never overwritten: two versions under one mask reveal their
        # difference.
        if path.exists():
            if (self._numbers(path, kind, size) != masked).any():
                raise InvalidInputError(
                    f"{path.name!r} was made from other rows or shares than the present ones. "
                    "All providers must begin again with empty folders."
                )
        else:
            body = {"numbers": base64.b64encode(masked.astype("<u8").tobytes()).decode()}
            files_written.append(self._write(path, kind, body))
        paths = [self.folder / f"{name}.{kind}" for name in (self.me, *self.others)]
        if missing := tuple(path.name for path in paths if not path.exists()):
            return None, Step(tuple(files_written), missing, None)
        total = np.zeros(size, dtype=np.uint64)
        for file in paths:
            total += self._numbers(file, kind, size)
        sums = total.reshape(numbers.shape)
        # Each number is 0 or 1 per provider; a wrong file makes sums random modulo 2^64.
        if (sums > len(paths)).any():
            raise InvalidInputError(
                "The sums are impossible: a file is damaged, or of another run. All providers must "
                "begin again with empty folders."
            )
        return sums.astype(np.int64), Step(tuple(files_written), (), None)

    def _numbers(self, path: Path, kind: str, size: int) -> Words:
        text = self._read(path, kind, "numbers")
        try:
            data = base64.b64decode(text, validate=True)
        except ValueError:
            data = b""
        if len(data) != 8 * size:
            raise InvalidInputError(
                f"{path.name!r} is damaged: it must contain {size:,} numbers. Ask for it again."
            )
        return np.frombuffer(data, dtype="<u8").astype(np.uint64)


def first_numbers(agreed: Agreement, counts: Counts) -> NDArray[np.bool_]:
    """Return, for each box, whether there are at least 1, …, k own rows, and which values occur.

    For l = 1 all values are one: it is enough that some row has a value, whichever.
    """
    at_least = counts.sum(axis=1)[:, None] >= np.arange(1, agreed.k + 1)
    by_value = counts[:, :BUCKETS]
    if agreed.values == 1:
        by_value = by_value.sum(axis=1, keepdims=True)
    numbers = np.concatenate([at_least, by_value > 0], axis=1) if agreed.values else at_least
    return np.asarray(numbers, dtype=np.bool_)


class OpenedSums:
    """What the first sums decide about every box."""

    def __init__(self, agreed: Agreement, sums: Counts) -> None:
        self.agreed = agreed
        self.having, self.holders = sums[:, : agreed.k], sums[:, agreed.k :]
        inside = self.having[:, 0]
        is_falling = (np.diff(self.having, axis=1) <= 0).all()
        if not is_falling or (self.holders > inside[:, None]).any():
            raise InvalidInputError(
                "The sums contradict each other: a file is of another run. All providers must "
                "begin again with empty folders."
            )
        self.boxes = np.flatnonzero(inside)
        self.many = np.minimum(agreed.m, inside - 1)
        remaining = np.maximum(self.having - self.many[:, None], 0).sum(axis=1)
        self.failing = [g for g in self.boxes.tolist() if remaining[g] < agreed.k]
        self.open: list[int] = []
        if agreed.values:
            for g in sorted({*self.boxes.tolist()} - {*self.failing}):
                rarest = np.sort(self.holders[g][self.holders[g] > 0])[: max(self.removed(g), 0)]
                if self.removed(g) <= 0 or rarest.sum() <= self.many[g]:
                    self.failing.append(g)
                elif rarest[-1] <= self.many[g]:
                    self.open.append(g)

    def removed(self, g: int) -> int:
        """Return how many values must be removed so that fewer than l remain."""
        return int((self.holders[g] > 0).sum()) - self.agreed.values + 1

    def rare(self, g: int) -> NDArray[np.bool_]:
        """Return which values have few enough holders to be removed by a coalition."""
        return np.asarray((self.holders[g] > 0) & (self.holders[g] <= self.many[g]))

    def second_numbers(self, counts: Counts) -> NDArray[np.bool_]:
        """Return, for each undecided box, whether there are at least 1, 2, … own removable values.

        At most as many as must be removed in that box: higher numbers would reveal more than
        needed.
        """
        rare_values = [[(counts[g, :BUCKETS][self.rare(g)] > 0).sum()] for g in self.open]
        needed = np.array([[self.removed(g)] for g in self.open])
        steps = np.arange(1, needed.max() + 1)
        return np.asarray((np.array(rare_values) >= steps) & (steps <= needed))

    def unshown(self, sums: Counts) -> list[int]:
        """Return the undecided boxes whose values some coalition might remove."""
        unproven = []
        for row, g in zip(sums, self.open, strict=True):
            needed = self.removed(g)
            rarest = np.sort(self.holders[g][self.rare(g)])[:needed]
            removable = np.minimum(row[:needed], self.many[g]).sum()
            if rarest.sum() <= removable:
                unproven.append(g)
        return unproven

    def verdict(self, unshown: Sequence[int]) -> JointVerdict:
        """Return the verdict: boxes that fail, and those that the second sums leave undecided."""
        names, failing_boxes = self.agreed.names, sorted([*self.failing, *unshown])
        constraint = str(self.agreed.constraint)
        failing = tuple(names[g] for g in failing_boxes)
        return JointVerdict(not failing_boxes, len(self.boxes), failing, constraint, self.agreed.m)
