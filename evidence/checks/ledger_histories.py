"""Random histories of a ledger, each decision beside an account that is added up from nothing.

Several openings of one ledger debit, debit together, extend, share out, repeat keys and restore
backups, while snapshots are removed and overwritten. A plain account of what was granted says
after each request whether it had to be granted. Only within rounding of a limit may it go either
way.
"""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from evidence.faults.server import NoServerError, new_database, running_server
from evidence.faults.work import scratch
from quiltwork import queries
from quiltwork.beliefs import (
    Belief,
    ChainBox,
    Clusters,
    CyclicChain,
    GaussianSeries,
    HiddenChain,
    MarkovChain,
)
from quiltwork.budget import Accountant, Ledger, Spending
from quiltwork.budget.ledger import snapshots
from quiltwork.errors import BudgetExceeded, InvalidInputError, NotPrivateError, UnsupportedError

NAME = "histories of a ledger"
CLAIM = "every debit, growth and share is granted or refused as by an account from scratch"
CASES = 5_000
IN_POSTGRES = 200

P, Q = [[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.2, 0.8]]
BELIEFS: tuple[tuple[Belief, int | None], ...] = (
    (MarkovChain(P), 300),
    (MarkovChain(P, [0.2, 0.8]), 300),
    (MarkovChain([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]], "any"), 120),
    (ChainBox([[0.85, 0.05], [0.3, 0.5]], [[0.95, 0.15], [0.5, 0.7]]), 200),
    (CyclicChain([P, Q, P]), 150),
    (HiddenChain([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]], ["a", "b", "b"]), 60),
    (GaussianSeries(ar=[0.8], within=1), 200),
    (GaussianSeries(ar=[-0.035, -0.998], within=1), 12),
    (Clusters([0, 0, 1, 1, 1, 2, 3, 3]), None),
)
OF_DELTA: tuple[tuple[Belief, int | None], ...] = (
    (MarkovChain(P), 300),
    (MarkovChain(P, [0.2, 0.8]), 60),
    (GaussianSeries(ar=[0.8], within=1), 200),
    (Clusters([0, 0, 1, 1, 1, 2, 3, 3]), None),
)
DELTA = Fraction(1, 10**6)
LEVELS = [Fraction(1, 500), Fraction(1, 100), Fraction(1, 30), Fraction(1, 7), Fraction(2, 3)]
CLOSE = Fraction(1, 2**24)
NOBODY: tuple[str | None, ...] = (None, None, None, "ana", "ben", "cai")


@dataclass
class Oracle:
    """What was granted, and what an account from scratch says to more of it."""

    belief: Belief
    length: int | None
    budget: Fraction
    delta: Fraction = Fraction(0)
    empty: dict[int | None, Any] = field(default_factory=dict)
    granted: list[tuple[Spending, str | None]] = field(default_factory=list)
    shares: dict[str, tuple[Fraction | None, Fraction]] = field(default_factory=dict)
    charged: dict[str, Fraction] = field(default_factory=dict)

    def total(self, spendings: list[Spending], length: int | None = None) -> Fraction:
        """What is spent: ε, or with a δ the share of the caps."""
        points = self.length if length is None else length
        if points not in self.empty:
            claim = {"budget": self.budget, "delta": self.delta} if self.delta else {}
            self.empty[points] = Accountant(self.belief, points, **claim)
        after = self.empty[points].after(*spendings)
        return Fraction(after.used if self.delta else after.total)

    @property
    def limit(self) -> Fraction:
        """What may be spent."""
        return Fraction(1) if self.delta else self.budget

    def all(self) -> list[Spending]:
        return [one for one, _ in self.granted]

    def own(self, who: str) -> list[Spending]:
        return [one for one, whose in self.granted if whose == who]

    def reserved(self, but: str | None) -> Fraction:
        left = (
            max(Fraction(0), reserved - self.charged.get(name, Fraction(0)))
            for name, (_, reserved) in self.shares.items()
            if name != but
        )
        return sum(left, Fraction(0))

    def margins(self, asked: list[Spending], who: str | None) -> list[Fraction]:
        """By how much each limit holds with these releases, as a share of the budget."""
        before, after = self.total(self.all()), self.total([*self.all(), *asked])
        margins = [self.limit - after, self.limit - after - self.reserved(who)]
        cap = None if who is None else self.shares.get(who, (None,))[0]
        if who is not None and cap is not None:
            charge = self.charged.get(who, Fraction(0)) + after - before
            margins.append(cap - charge)
            margins.append(cap - self.total([*self.own(who), *asked]))
        return [one / self.limit for one in margins]

    def unnamed(self, who: str | None) -> bool:
        return who not in self.shares and any(cap is not None for cap, _ in self.shares.values())

    def add(self, asked: list[Spending], who: str | None) -> None:
        for one in asked:
            before = self.total(self.all())
            self.granted.append((one, who))
            if who is not None:
                rise = max(Fraction(0), self.total(self.all()) - before)
                self.charged[who] = self.charged.get(who, Fraction(0)) + rise


def check(
    cases: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
    new_url: Callable[[Path, int], str] | None = None,
    seed: int = 0,
) -> Counter[str]:
    counted: Counter[str] = Counter()
    tail, snapshots.TAIL = snapshots.TAIL, 1
    try:
        for case in range(cases):
            with scratch() as folder:
                place = Path(folder)
                url = new_url(place, case) if new_url else f"sqlite:///{place / 'budget.db'}"
                _History(random.Random(seed + case), place, url, counted).run()  # noqa: S311
            progress(case + 1, cases)
    finally:
        snapshots.TAIL = tail
    return counted


class _History:
    def __init__(self, draw: random.Random, folder: Path, url: str, counted: Counter[str]) -> None:
        self.draw, self.folder, self.url, self.counted = draw, folder, url, counted
        self.in_file = url.startswith("sqlite")
        delta = draw.choice([Fraction(0)] * 4 + [DELTA])
        belief, length = draw.choice(OF_DELTA if delta else BELIEFS)
        budget = Fraction(draw.choice([1, 3, 10]), 4)
        self.oracle = Oracle(belief, length, budget, delta)
        self.opened = [Ledger.open(url) for _ in range(3)]
        self.opened[0].create("d", belief, length, budget, delta=delta)
        self.counted["with a delta"] += bool(delta)
        self.keys: dict[tuple[str, str | None], tuple[Spending, str | None]] = {}
        self.backups = 0

    @property
    def points(self) -> int:
        found = self.oracle.length
        return found if found is not None else 8

    @property
    def ledger(self) -> Ledger:
        return self.draw.choice(self.opened)

    def spending(self) -> Spending:
        draw = self.draw
        start = draw.randint(1, self.points)
        stop = min(self.points, start + draw.choice([0, 1, 5, 40, self.points]))
        level = draw.choice(LEVELS)
        if self.oracle.delta and draw.random() < 0.8:
            if isinstance(self.oracle.belief, GaussianSeries):
                mean = queries.mean(-1, 1).on(start, stop)
                return Spending.of_gaussian(mean, draw.choice([30, 90, 300, 5]), self.points)
            return Spending.gaussian(start, stop, rho=level**2 / 10)
        if isinstance(self.oracle.belief, GaussianSeries):
            return Spending(start, stop, level, span=Fraction(1))
        pair = draw.choice([Fraction(0), Fraction(0), level]) if stop > start else Fraction(0)
        return Spending(start, stop, level, pair, draw.choice([Fraction(0), Fraction(1, 997)]))

    def run(self) -> None:
        steps = [self.debit] * 8 + [self.together, self.grow, self.share, self.share]
        steps += [self.repeat, self.restored] + [self.spoil] * 2 * self.in_file
        for _ in range(self.draw.randint(3, 14)):
            self.draw.choice(steps)()
        self.compare()
        for one in self.opened:
            one.close()

    def decided(self, margins: list[Fraction], grant: Callable[[], Any]) -> bool:
        """Ask, and compare the verdict with what the limits say; returns whether it was granted."""
        least = min(margins)
        try:
            grant()
        except BudgetExceeded:
            assert least <= CLOSE, f"refused, though it fits by {float(least):.3g}: {self.told()}"
            self.counted["refused"] += 1
            return False
        assert least >= -CLOSE, f"granted, though it exceeds by {float(-least):.3g}: {self.told()}"
        self.counted["granted"] += 1
        return True

    def told(self) -> str:
        return f"{self.oracle}"

    def debit(self) -> None:
        self._debit([self.spending()], together=False)

    def together(self) -> None:
        self._debit([self.spending() for _ in range(self.draw.randint(2, 4))], together=True)

    def _debit(self, asked: list[Spending], *, together: bool) -> None:
        who = self.draw.choice(NOBODY)
        key = None if together else self.draw.choice([None, None, f"k{self.draw.randrange(10**6)}"])
        if self.oracle.unnamed(who):
            try:
                self.ledger.debit_all("d", asked, who)
            except InvalidInputError:
                self.counted["unnamed"] += 1
                return
            raise AssertionError(f"granted to somebody without a share: {self.told()}")
        margins = self.oracle.margins(asked, who)

        def grant() -> None:
            if together:
                self.ledger.debit_all("d", asked, who)
                return
            receipt = self.ledger.debit("d", asked[0], key, who)
            if key is not None:
                stored = self.draw.choice([None, f"answer to {key}"])
                if stored is not None:
                    receipt.complete(stored)
                self.keys[key, who] = asked[0], stored

        if self.decided(margins, grant):
            self.oracle.add(asked, who)

    def repeat(self) -> None:
        if not self.keys:
            return
        (key, who), (spending, stored) = self.draw.choice(list(self.keys.items()))
        if self.oracle.unnamed(who):
            return
        try:
            found = self.ledger.debit("d", spending, key, who).stored
        except NotPrivateError:
            found = None
        assert found == stored, f"the key {key!r} answers {found!r} for {stored!r}"
        try:
            self.ledger.debit("d", spending.times(2), key, who)
        except InvalidInputError:
            self.counted["repeated"] += 1
            return
        raise AssertionError("a key was taken for another request")

    def grow(self) -> None:
        length = self.points + self.draw.choice([0, 1, 7, 100])
        if self.oracle.length is None:
            try:
                self.ledger.extend("d", length)
            except UnsupportedError:
                return
            raise AssertionError("fixed rows grew")
        oracle, budget = self.oracle, self.oracle.limit
        now, then = (oracle.total(oracle.all(), one) for one in (None, length))
        if then <= now * (1 + Fraction(1, 10**9)):
            then = min(then, now)  # rounding
        free = max(budget - oracle.reserved(None), min(now, budget))
        margins = [(free - then) / budget]
        for who, (cap, _) in oracle.shares.items():
            if cap is not None:  # perhaps lowered below what she had used
                used, later = (oracle.total(oracle.own(who), one) for one in (None, length))
                margins.append((max(cap, used) - later) / budget)
        if length == self.points or isinstance(oracle.belief, MarkovChain | CyclicChain | ChainBox):
            margins = [Fraction(1)]
        if self.decided(margins, lambda: self.ledger.extend("d", length)):
            oracle.length = length
            self.counted["grown"] += 1

    def share(self) -> None:
        draw, oracle = self.draw, self.oracle
        who = draw.choice(["ana", "ben", "cai"])
        cap = draw.choice([None, None, oracle.limit / 3, oracle.limit, Fraction(0)])
        reserved = draw.choice([Fraction(0), Fraction(0), oracle.limit / 4])
        if cap is not None and reserved > cap:
            return
        own = max(Fraction(0), reserved - oracle.charged.get(who, Fraction(0)))
        free = oracle.limit - oracle.total(oracle.all()) - oracle.reserved(who)
        margin = [(free - own) / oracle.limit] if own else [Fraction(1)]
        if own == 0 and free < 0:  # more is reserved than is free, by a share that was raised
            return
        if self.decided(margin, lambda: self.ledger.allot("d", who, cap, reserved)):
            oracle.shares[who] = cap, reserved
            self.counted["shared"] += 1

    def spoil(self) -> None:
        """Remove or overwrite the snapshot, as nobody should."""
        with (
            closing(sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=30)) as file,
            file,
        ):
            if self.draw.random() < 0.4:
                file.execute("DELETE FROM quiltwork_snapshots")
            elif self.draw.random() < 0.5:
                file.execute("UPDATE quiltwork_snapshots SET body = replace(body, '1', '2')")
            else:
                file.execute("UPDATE quiltwork_snapshots SET digest = 'x', body = '{}'")
        self.opened.append(Ledger.open(self.url))
        self.counted["spoiled"] += 1

    def restored(self) -> None:
        """Go on from a backup of which nothing was lost."""
        self.backups += 1
        path = self.folder / f"backup{self.backups}.jsonl"
        self.ledger.backup(path)
        if not self.in_file:
            return
        self.url = f"sqlite:///{self.folder / f'restored{self.backups}.db'}"
        for one in self.opened:
            one.close()
        self.opened = [Ledger.restore(path, self.url, lost={"d": []}), Ledger.open(self.url)]
        self.counted["restored"] += 1

    def compare(self) -> None:
        oracle = self.oracle
        total = oracle.total(oracle.all())
        for ledger in (*self.opened, Ledger.open(self.url)):
            status = ledger.status("d")
            assert status.debits == len(oracle.granted)
            spent = status.exact_used if oracle.delta else status.exact_total
            assert abs(spent - total) <= CLOSE * max(total, oracle.limit)
            assert max(spent / oracle.limit, status.exact_total / oracle.budget) <= 1 + CLOSE
            assert status.length == self.points or oracle.length is None
            for who, charged in oracle.charged.items():
                assert abs(status.charged[who] - charged) <= CLOSE * oracle.limit
        assert [one.spending for one in self.opened[-1].history("d")] == oracle.all()
        self.opened[0].verify()


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    counted = check(CASES, progress)
    found: dict[str, object] = {"histories in SQLite": CASES}
    try:
        with running_server() as server:
            counted += check(
                IN_POSTGRES, new_url=lambda _, n: new_database(server, f"h{n}"), seed=10**6
            )
        found["histories in PostgreSQL"] = IN_POSTGRES
    except NoServerError as problem:
        found["PostgreSQL"] = str(problem)
    assert min(counted[name] for name in ("granted", "refused", "grown", "spoiled")) > CASES // 10
    return {**found, **dict(sorted(counted.items())), "disagreements": 0}
