"""Bayesian networks from files in the Bayesian Interchange Format (BIF 0.15).

`variable` blocks name the nodes and their states, `probability` blocks the tables: rows such as
`(yes, no) 0.1, 0.9;`, a `default` row for the others, or one flat `table` in which the last
variable listed varies fastest. Comments and `property` lines are skipped. Files print rounded
probabilities, so a row is divided by its sum if that is within 1e-4 of 1. Linear in the file.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from quiltwork import files
from quiltwork.beliefs.graphs import Plain, checked
from quiltwork.beliefs.matrices import KEPT_AS_IS
from quiltwork.errors import InvalidInputError

_ROUNDED = 1e-4

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<text>"[^"\n]*")
      | (?P<sign>[{}()\[\]|,;])
      | (?P<word>[^\s{}()\[\]|,;"]+)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class BifToken:
    """A word, a quoted text or a sign, and its line."""

    text: str
    line: int
    sign: bool


def read_bif(path: str | os.PathLike[str]) -> tuple[Plain, dict[Any, Any], dict[Any, Any]]:
    """Return the graph, the tables and the states of the network in a file."""
    file = files.named(path)
    return _Reader(files.text_of(file), file.name).network()


class _Reader:
    """One pass over the tokens of a file."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.tokens = list(self._tokens(text))
        self.place = 0
        self.states: dict[str, list[str]] = {}
        self.parents: dict[str, list[str]] = {}
        self.tables: dict[str, Any] = {}

    def _tokens(self, text: str) -> Iterator[BifToken]:
        place, line = 0, 1
        while place < len(text):
            found = _TOKEN.match(text, place)
            if found is None:
                raise InvalidInputError(
                    f"{self.name}, line {line}: {text[place]!r} cannot be read here; a quoted name "
                    "must end on its line, and so on."
                )
            if found["skip"] is None:
                yield BifToken(found[0].strip('"'), line, found["sign"] is not None)
            line += found[0].count("\n")
            place = found.end()
        yield BifToken("", line, True)

    def network(self) -> tuple[Plain, dict[Any, Any], dict[Any, Any]]:
        """Read all blocks."""
        blocks = {"network": self._skip, "variable": self._variable, "probability": self._table}
        while self._next().text or not self._next().sign:
            token = self._take()
            if token.sign or token.text not in blocks:
                self._refuse(token, "expected network, variable or probability")
            blocks[token.text]()
        if not self.states:
            self._refuse(self._next(), "the file has no variable blocks")
        names = list(self.states)
        missing = [name for name in names if name not in self.tables]
        if missing:
            self._refuse(self._next(), f"variable {missing[0]!r} has no probability block")
        number = {name: i for i, name in enumerate(names)}
        edges = tuple((number[p], number[n]) for n in names for p in self.parents[n])
        return checked(Plain(tuple(names), edges, True)), self.tables, dict(self.states)

    def _skip(self) -> None:
        """The network block says nothing that we need."""
        while not self._is("{"):
            self._word("a name")
        self._take()
        while not self._is("}"):
            if self._next() is self.tokens[-1]:
                self._refuse(self._next(), "the file ends inside a block")
            self._take()
        self._take()

    def _variable(self) -> None:
        token = self._next()
        name = self._word("the variable's name")
        if name in self.states:
            self._refuse(token, f"variable {name!r} is declared twice")
        self._sign("{")
        while not self._is("}"):
            token = self._take()
            if token.text == "property":
                self._to_semicolon()
            elif token.text == "type":
                self.states[name] = self._type(name)
            else:
                self._refuse(token, "expected type or property")
        self._take()
        if name not in self.states:
            self._refuse(token, f"variable {name!r} has no type line with its states")

    def _type(self, name: str) -> list[str]:
        token = self._next()
        if self._word("discrete") != "discrete":
            self._refuse(token, f"variable {name!r} is not discrete")
        self._sign("[")
        token = self._next()
        count = self._word("the number of states")
        self._sign("]")
        self._sign("{")
        labels = self._words("}")
        self._sign(";")
        if count != str(len(labels)) or not labels:
            self._refuse(token, f"{name!r} announces {count} states and lists {len(labels)}")
        if len(set(labels)) != len(labels):
            self._refuse(token, f"{name!r} has two states of the same name")
        return labels

    def _table(self) -> None:
        self._sign("(")
        token = self._next()
        name = self._word("a variable")
        parents = []
        if self._is("|"):
            self._take()
            parents = self._words(")")
        else:
            self._sign(")")
        for one in (name, *parents):
            if one not in self.states:
                self._refuse(token, f"{one!r} is not a variable declared above")
        if name in self.tables:
            self._refuse(token, f"{name!r} has two probability blocks")
        if len({name, *parents}) <= len(parents):
            self._refuse(token, f"{name!r} names a variable twice")
        self._sign("{")
        self.parents[name] = parents
        self.tables[name] = self._rows(name, parents, token)

    def _rows(self, name: str, parents: list[str], start: BifToken) -> np.ndarray[Any, Any]:
        shape = [len(self.states[one]) for one in (*parents, name)]
        values = np.full(shape, np.nan)
        default: list[float] | None = None
        while not self._is("}"):
            token = self._take()
            if token.text == "property" and not token.sign:
                self._to_semicolon()
            elif token.text == "table" and not token.sign:
                if not np.isnan(values).all():
                    self._refuse(token, f"the table of {name!r} comes after rows of its own")
                flat = self._numbers(token, values.size)
                values = np.moveaxis(np.reshape(flat, [shape[-1], *shape[:-1]]), 0, -1).copy()
                for index in itertools.product(*map(range, shape[:-1])):
                    values[index] = self._whole(token, values[index].tolist())
            elif token.text == "default" and not token.sign:
                if default is not None:
                    self._refuse(token, f"the table of {name!r} has two default rows")
                default = self._whole(token, self._numbers(token, shape[-1]))
            elif token.text == "(" and token.sign:
                index = self._configuration(token, parents)
                if not np.isnan(values[index]).all():
                    given = self._given(parents, index)
                    self._refuse(token, f"the table of {name!r} has two rows for ({given})")
                values[index] = self._whole(token, self._numbers(token, shape[-1]))
            else:
                self._refuse(token, "expected a row such as (yes) 0.1, 0.9; or table 0.1, 0.9;")
        self._take()
        if default is not None:
            values = np.where(np.isnan(values), np.broadcast_to(default, shape), values)
        for index in itertools.product(*map(range, shape[:-1])):
            if np.isnan(values[index]).any():
                given = self._given(parents, index)
                self._refuse(start, f"the table of {name!r} has no row for ({given})")
        return values

    def _given(self, parents: list[str], index: tuple[int, ...]) -> str:
        return ", ".join(self.states[one][i] for one, i in zip(parents, index, strict=True))

    def _configuration(self, token: BifToken, parents: list[str]) -> tuple[int, ...]:
        labels = self._words(")")
        if len(labels) != len(parents):
            self._refuse(token, f"a row names {len(labels)} states for {len(parents)} parents")
        for one, label in zip(parents, labels, strict=True):
            if label not in self.states[one]:
                known = ", ".join(self.states[one])
                self._refuse(token, f"{label!r} is not a state of {one!r}, which has {known}")
        return tuple(self.states[one].index(s) for one, s in zip(parents, labels, strict=True))

    def _numbers(self, token: BifToken, count: int) -> list[float]:
        words = self._words(";")
        try:
            numbers = [float(word) for word in words]
        except ValueError:
            self._refuse(token, f"{' '.join(words)!r} is not a list of numbers")
        if len(numbers) != count:
            self._refuse(token, f"expected {count} numbers, found {len(numbers)}")
        if any(not 0 <= number <= 1 for number in numbers):
            self._refuse(token, "a probability is a number from 0 to 1")
        return numbers

    def _whole(self, token: BifToken, row: list[float]) -> list[float]:
        """A row that sums to 1, but for the rounding of what a file prints."""
        total = math.fsum(row)
        if abs(total - 1) > _ROUNDED:
            self._refuse(token, f"the probabilities sum to {total:.10g}, not 1")
        return row if abs(total - 1) <= KEPT_AS_IS else [value / total for value in row]

    def _words(self, end: str) -> list[str]:
        """Words separated by commas or spaces, up to a sign."""
        found = []
        while not self._is(end):
            if self._is(","):
                self._take()
            else:
                found.append(self._word(f"a name or {end!r}"))
        self._take()
        return found

    def _to_semicolon(self) -> None:
        while not self._is(";"):
            if self._next() is self.tokens[-1]:
                self._refuse(self._next(), "the file ends inside a property")
            self._take()
        self._take()

    def _next(self) -> BifToken:
        return self.tokens[self.place]

    def _take(self) -> BifToken:
        token = self._next()
        if token is self.tokens[-1]:
            self._refuse(token, "the file ends inside a block")
        self.place += 1
        return token

    def _is(self, sign: str) -> bool:
        return self._next().sign and self._next().text == sign

    def _sign(self, sign: str) -> None:
        if not self._is(sign):
            self._refuse(self._next(), f"expected {sign!r}")
        self._take()

    def _word(self, what: str) -> str:
        token = self._next()
        if token.sign:
            self._refuse(token, f"expected {what}")
        return self._take().text

    def _refuse(self, token: BifToken, why: str) -> NoReturn:
        found = f", found {token.text!r}" if token.text and why.startswith("expected") else ""
        raise InvalidInputError(f"{self.name}, line {token.line}: {why}{found}.")
