"""Are agreed boxes m-private for the rows of several providers, if no row leaves its provider?

The boxes (groups) are public and disjoint. Each provider counts its own rows in them; only sums
over all providers are opened. For every box and t = 1, …, k: how many providers have at least t
rows there; for every box and salted number of a sensitive value: how many have it; and where these
leave distinct l-diversity open, how many have at least t values that at most m hold. No name is in
any of it. k-anonymity is decided exactly, l exactly for m = 1 and by a bound for more, which may
say "not shown" of a private table and never "private" of another.

Sums are opened by additive shares modulo 2^64: every provider gives every other a share, a seed
from the operating system that stands for random numbers of any length (SHAKE-256), publishes its
numbers plus the shares that it got minus those that it gave, and the sum of what is published is
that of the numbers. Everybody follows the protocol (semi-honest); what two or more learn together
is what they could subtract. Cost: boxes × (k + BUCKETS) numbers from each provider.

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
from itertools import permutations
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
from quiltwork.tables.table import Table, read_table
from quiltwork.wording import argument

BUCKETS = 1024
"""Salted numbers of sensitive values; two values with one number count as one."""
MOST_NUMBERS = 20_000_000
Words = NDArray[np.uint64]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class JointVerdict(ResultBase):
    """What the providers found out together.

    Attributes:
        private: whether every box withstands m colluding providers; False: not, or not shown.
        boxes: how many boxes have rows.
        failing: the boxes that are not shown to withstand them.
        constraint, m: what was asked.
    """

    private: bool
    boxes: int
    failing: tuple[tuple[str, ...], ...]
    constraint: str
    m: int

    def explain(self) -> str:
        """Say what was found out."""
        asked = f"{self.constraint}, whichever {self.m} collude"
        if self.m < 2:
            asked = f"{self.constraint} against {'any provider' if self.m else 'outsiders'}"
        if self.private:
            return f"Private: all {self.boxes:,} boxes with rows keep {asked}."
        few = f"{len(self.failing):,} of {self.boxes:,} boxes"
        return f"Not shown: {few} may not keep {asked}, such as ({', '.join(self.failing[0])})."


class Step(NamedTuple):
    """What one call did: files that were written, files that are missing, and the verdict."""

    written: tuple[Path, ...]
    missing: tuple[str, ...]
    verdict: JointVerdict | None


@dataclass(frozen=True, eq=False)
class Agreement:
    """What all providers must agree on before they begin.

    Attributes:
        providers: the names of all of them, at least three.
        boxes: a table whose rows with equal quasi-identifiers are the boxes; a published one, say.
        constraint: k-anonymity, distinct l-diversity or both.
        m: how many may collude.
        salt: known to the providers alone; gives sensitive values their numbers.
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
                "Name at least three providers, each once: of two each would learn the other's."
            )
        named = (isinstance(name, str) and name.isprintable() for name in names)
        if not all(named) or any(not name or Path(name).name != name for name in names):
            raise InvalidInputError("Providers' names become names of files; call them otherwise.")
        pairs = {f"{giver}-{taker}".casefold() for giver, taker in permutations(names, 2)}
        if len(pairs) < len(names) * (len(names) - 1):  # such as a and a-a: a-a-a.share is both's
            raise InvalidInputError("Two shares would have one name of a file; rename providers.")
        if not isinstance(self.salt, bytes) or len(self.salt) < 16:
            raise InvalidInputError("The salt needs at least 16 bytes that nobody can guess.")
        parse_m(self.m)
        if not as_constraint(self.constraint).counts_alone:
            raise UnsupportedError("Only k-anonymity and distinct l-diversity are verified so.")
        if (size := self.boxes.groups.count * (self.k + BUCKETS)) > MOST_NUMBERS:
            raise UnsupportedError(f"{size:,} numbers from each are too many: fewer boxes, less k.")

    @property
    def k(self) -> int:
        """How many records a box needs."""
        return self.constraint.records_asked

    @property
    def values(self) -> int:
        """How many sensitive values a box needs; 1 if that was not asked."""
        return self.constraint.values_asked

    @property
    def names(self) -> list[tuple[str, ...]]:
        """The texts of the boxes, in the order in which everybody counts them."""
        return sorted(self._of_box(g) for g in range(self.boxes.groups.count))

    def _of_box(self, group: int) -> tuple[str, ...]:
        return tuple(map(str, self.boxes.group_values(group)))

    def digest(self, own: Table) -> str:
        """What every file says, so that files of another agreement are refused.

        Where values are counted, all must count those of the same columns alike.
        """
        columns: list[Any] = [self.boxes.quasi_identifiers, []]
        if self.values > 1:
            columns[1] = [*own.sensitive, sorted(own.levels.items()), own.count_missing]
        asked = [self.k, self.values, self.m, BUCKETS]
        text = json.dumps([sorted(self.providers), columns, self.names, asked])
        return hmac.new(self.salt, text.encode(), hashlib.sha256).hexdigest()

    def bucket(self, value: Any) -> int:
        """Return the salted number of a sensitive value."""
        text = _canonical(canonical_value(value))
        found = hmac.new(self.salt, text.encode(), hashlib.sha256).digest()
        return int.from_bytes(found[:8], "big") % BUCKETS

    def counted(self, own: Table, left_out: int) -> Counts:
        """Return the own rows by box and salted value; in the last column those without a value."""
        if set(own.quasi_identifiers) != set(self.boxes.quasi_identifiers):
            raise InvalidInputError("The boxes and your rows must have the same quasi-identifiers.")
        refuse_subjects(own)
        mine = own.encoded
        sizes = [len(column.values) for column in mine.quasi]
        columns = [*(column.codes for column in mine.quasi), mine.sensitive]
        alike = group_rows(columns, [*sizes, len(mine.sensitive_values)])
        weight = np.bincount(alike.labels, minlength=alike.count)
        row, box = fitting_groups(self.boxes, own, alike.first)
        places = np.bincount(row, minlength=alike.count)
        if (places > 1).any():
            raise InvalidInputError(
                "Boxes overlap: some of your rows are in several of them. Agree on boxes that do "
                "not, as anonymize makes them with boxes='disjoint' (--boxes disjoint)."
            )
        outside = int(weight[places == 0].sum())
        if outside > left_out:
            raise InvalidInputError(
                f"{outside:,} of your rows are in no box, or under labels that are not "
                "understood; declare hierarchies and orders, or pass "
                f"{argument('left_out', outside)} if they "
                "are not to be published."
            )
        order = {name: place for place, name in enumerate(self.names)}
        place_of = np.array([order[self._of_box(g)] for g in range(len(order))])
        number = np.array([*map(self.bucket, mine.classes), BUCKETS])
        counts = np.zeros((len(order), BUCKETS + 1), dtype=np.int64)
        cells = (place_of[box], number[mine.row_classes[alike.first[row]]])
        np.add.at(counts, cells, weight[row])
        return counts


def _canonical(found: Any) -> str:
    if isinstance(found, tuple):
        return f"({','.join(map(_canonical, found))})"
    if isinstance(found, Decimal):
        sign, digits, exponent = found.as_tuple()
        text = "".join(map(str, digits)).rstrip("0")
        return f"{sign}:{text}e{int(exponent) + len(digits) - len(text)}" if found else "0"
    return json.dumps(found)


def read_boxes(source: Any, quasi_identifiers: Sequence[str], text: Sequence[str] = ()) -> Table:
    """Return the boxes of a frame or file, one for each combination of quasi-identifiers."""
    frame = open_frame(source, text)
    known = frame.names
    if absent := [name for name in quasi_identifiers if list(known).count(name) != 1]:
        raise InvalidInputError(f"The boxes have no single column {absent[0]!r}.")
    table = frame.arrow(quasi_identifiers)
    name = "box"
    while name in quasi_identifiers:
        name += "_"
    nothing = arrow().array([""] * table.num_rows)
    whole = table.append_column(name, nothing)
    return Table(whole, None, quasi_identifiers, name, missing="value")


def take_step(
    agreed: Agreement, me: str, own: Table, folder: str | Path, left_out: int = 0
) -> Step:
    """Do what can be done with the files that are in the folder; call it until there is a verdict.

    Writes `me-other.share`, each for one other provider alone, then `me.counts` and, if it is
    needed, `me.rare`, both for all others; each is written once. What others give goes into the
    same folder.

    Raises:
        InvalidInputError: if rows do not fit the boxes, or a file is damaged, of another agreement
            or of another run.
    """
    if me not in agreed.providers:
        raise InvalidInputError(f"{me!r} is none of the providers: {', '.join(agreed.providers)}.")
    counts = agreed.counted(read_table(own), integer(left_out, "left_out", 0))
    target, others = files.as_path(f"{folder}/{me}").parent, sorted({*agreed.providers} - {me})
    with suppress(OSError):  # what cannot be written says so
        target.mkdir(0o700, exist_ok=True)
    run = _Run(agreed.digest(own), me, target, others)
    written = [run.write_share(other) for other in run.others if not run.share(me, other).exists()]
    shares = [run.share(other, me) for other in run.others]
    if missing := tuple(path.name for path in shares if not path.exists()):
        return Step(tuple(written), missing, None)
    sums, step = run.opened("counts", first_numbers(agreed, counts), written)
    if sums is None:
        return step
    found = OpenedSums(agreed, sums)
    if not found.open:
        return step._replace(verdict=found.verdict(()))
    sums, more = run.opened("rare", found.second_numbers(counts), step.written)
    return more if sums is None else more._replace(verdict=found.verdict(found.unshown(sums)))


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
        return self._write(self.share(self.me, other), "share", {"seed": secrets.token_hex(32)})

    def _write(self, path: Path, kind: str, body: dict[str, Any]) -> Path:
        said = {"kind": kind, "agreed": self.digest, **body}
        files.write(path, files.dump("joint", 1, said), files.OWNER_ONLY)
        return path

    def _read(self, path: Path, kind: str, field: str) -> str:
        document = files.load(files.read_bytes(path), "joint", (1,))
        if (document.get("kind"), document.get("agreed")) != (kind, self.digest):
            raise InvalidInputError(
                f"{path.name!r} was made for other boxes, columns, providers, constraints or salt."
            )
        if not isinstance(document.get(field), str):
            raise InvalidInputError(f"{path.name!r} has no {field}.")
        return str(document[field])

    def _mask(self, giver: str, taker: str, kind: str, size: int) -> Words:
        """Return the share that a seed stands for."""
        seed = self._read(self.share(giver, taker), "share", "seed")
        stream = hashlib.shake_256(f"{kind} {giver} {taker} {seed}".encode()).digest(8 * size)
        return np.frombuffer(stream, dtype="<u8").astype(np.uint64)

    def opened(
        self, kind: str, mine: NDArray[np.bool_], written: Sequence[Path]
    ) -> tuple[Counts | None, Step]:
        """Publish own numbers behind shares, and add up what everybody published."""
        path, size = self.folder / f"{self.me}.{kind}", mine.size
        done, hidden = [*written], mine.ravel().astype(np.uint64)
        for other in self.others:
            hidden += self._mask(other, self.me, kind, size)
            hidden -= self._mask(self.me, other, kind, size)
        if path.exists():
            if (self._numbers(path, kind, size) != hidden).any():
                raise InvalidInputError(
                    f"{path.name!r} was made of other rows or shares than those that are here now. "
                    "Begin again, all of you, with empty folders."
                )
        else:
            body = {"numbers": base64.b64encode(hidden.astype("<u8").tobytes()).decode()}
            done.append(self._write(path, kind, body))
        paths = [self.folder / f"{name}.{kind}" for name in (self.me, *self.others)]
        if missing := tuple(path.name for path in paths if not path.exists()):
            return None, Step(tuple(done), missing, None)
        total = np.zeros(size, dtype=np.uint64)
        for one in paths:
            total += self._numbers(one, kind, size)
        sums = total.reshape(mine.shape)
        if (sums > len(paths)).any():
            raise InvalidInputError(
                "The sums are impossible: a file is damaged, or of another run. Begin again, with "
                "empty folders."
            )
        return sums.astype(np.int64), Step(tuple(done), (), None)

    def _numbers(self, path: Path, kind: str, size: int) -> Words:
        text = self._read(path, kind, "numbers")
        try:
            data = base64.b64decode(text, validate=True)
        except ValueError:
            data = b""
        if len(data) != 8 * size:
            raise InvalidInputError(f"{path.name!r} is damaged: it has not {size:,} numbers.")
        return np.frombuffer(data, dtype="<u8").astype(np.uint64)


def first_numbers(agreed: Agreement, counts: Counts) -> NDArray[np.bool_]:
    """Return for each box whether there are at least 1, …, k own rows, and which values."""
    many = counts.sum(axis=1)[:, None] >= np.arange(1, agreed.k + 1)
    held = counts[:, :BUCKETS] > 0
    return np.concatenate([many, held], axis=1) if agreed.values > 1 else many


class OpenedSums:
    """What the first sums say of every box."""

    def __init__(self, agreed: Agreement, sums: Counts) -> None:
        self.agreed = agreed
        self.having, self.holders = sums[:, : agreed.k], sums[:, agreed.k :]
        inside = self.having[:, 0]
        falling = (np.diff(self.having, axis=1) <= 0).all()
        if not falling or (self.holders > inside[:, None]).any():
            raise InvalidInputError("The sums contradict each other: a file is of another run.")
        self.boxes = np.flatnonzero(inside)
        self.many = np.minimum(agreed.m, inside - 1)
        left = np.maximum(self.having - self.many[:, None], 0).sum(axis=1)
        self.failing = [g for g in self.boxes.tolist() if left[g] < agreed.k]
        self.open: list[int] = []
        if agreed.values > 1:
            for g in sorted({*self.boxes.tolist()} - {*self.failing}):
                few = np.sort(self.holders[g][self.holders[g] > 0])[: max(self.removed(g), 0)]
                if self.removed(g) <= 0 or few.sum() <= self.many[g]:
                    self.failing.append(g)
                elif few[-1] <= self.many[g]:
                    self.open.append(g)

    def removed(self, g: int) -> int:
        """How many values must go before fewer than l are left."""
        return int((self.holders[g] > 0).sum()) - self.agreed.values + 1

    def rare(self, g: int) -> NDArray[np.bool_]:
        """Which values few enough providers hold to take them away."""
        return np.asarray((self.holders[g] > 0) & (self.holders[g] <= self.many[g]))

    def second_numbers(self, counts: Counts) -> NDArray[np.bool_]:
        """Return for each open box whether there are at least 1, 2, … own values that are rare.

        Up to as many as must go in that box: more would be told than is needed.
        """
        held = [[(counts[g, :BUCKETS][self.rare(g)] > 0).sum()] for g in self.open]
        need = np.array([[self.removed(g)] for g in self.open])
        steps = np.arange(1, need.max() + 1)
        return np.asarray((np.array(held) >= steps) & (steps <= need))

    def unshown(self, sums: Counts) -> list[int]:
        """Return the open boxes whose values some coalition might take away."""
        found = []
        for row, g in zip(sums, self.open, strict=True):
            need = self.removed(g)
            few = np.sort(self.holders[g][self.rare(g)])[:need]
            held = np.minimum(row[:need], self.many[g]).sum()
            if few.sum() <= held:
                found.append(g)
        return found

    def verdict(self, unshown: Sequence[int]) -> JointVerdict:
        """Name the boxes that fail, and those that the second sums leave open."""
        names, bad = self.agreed.names, sorted([*self.failing, *unshown])
        said = str(self.agreed.constraint)
        failing = tuple(names[g] for g in bad)
        return JointVerdict(not bad, len(self.boxes), failing, said, self.agreed.m)
