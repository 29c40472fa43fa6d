"""Bayesian networks from files in the Bayesian Interchange Format (BIF 0.15).

`variable` blocks name the nodes and their states, `probability` blocks the tables: rows such as
`(yes, no) 0.1, 0.9;`, a `default` row for the others, or one flat `table` in which the last
variable listed varies fastest. Comments and `property` lines are skipped. Files print rounded
probabilities, so a row is divided by its sum if that is within 1e-4 of 1. Linear in the file.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np

from quiltwork import files
from quiltwork.beliefs.graphs import PlainGraph, validated_graph
from quiltwork.beliefs.matrices import KEPT_AS_IS
from quiltwork.errors import InvalidInputError

_ROUNDED = 1e-4
_TOKEN = re.compile(
    r'\s+|//[^\n]*|/\*.*?\*/|"(?P<text>[^"\n]*)"|(?P<sign>[{}()\[\]|,;])'
    r'|(?P<word>[^\s{}()\[\]|,;"]+)',
    re.DOTALL,
)


class BifToken(NamedTuple):
    """A token of the file: a word, a quoted text or a sign, with its line number."""

    text: str
    line: int
    sign: bool


Statement = list[BifToken]


def read_bif(path: str | os.PathLike[str]) -> tuple[PlainGraph, dict[Any, Any], dict[Any, Any]]:
    """Return the graph, the tables and the states of the network in a file."""
    file = files.as_path(path)
    return _Reader(files.read_text(file), file.name).network()


def _shape(statement: Statement) -> str:
    """Return a statement's signs, with `w` for every word: the pattern that is matched."""
    return "".join(token.text if token.sign else "w" for token in statement)


def _words(statement: Statement) -> list[str]:
    return [token.text for token in statement if not token.sign]


class _Reader:
    """A parser in one pass over the tokens of a file: blocks of statements, matched by shape."""

    def __init__(self, text: str, name: str) -> None:
        self.name, self.line, self.tokens = name, 1, self._tokens(text)
        self.states: dict[str, list[str]] = {}
        self.parents: dict[str, list[str]] = {}
        self.tables: dict[str, Any] = {}

    def _tokens(self, text: str) -> Iterator[BifToken]:
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                self._refuse(
                    self.line, f"{text[position]!r} cannot be read: names end on their line"
                )
            if match.lastgroup:
                yield BifToken(match[match.lastgroup], self.line, match.lastgroup == "sign")
            self.line += match[0].count("\n")
            position = match.end()

    def network(self) -> tuple[PlainGraph, dict[Any, Any], dict[Any, Any]]:
        """Read all blocks."""
        for kind, line, sign in self.tokens:
            if sign or kind not in ("network", "variable", "probability"):
                self._refuse(line, f"expected network, variable or probability, found {kind!r}")
            (head, _), rows = self._upto("{"), []
            while (found := self._upto(";", "}"))[1] == ";":
                rows += [row for row in found[:1] if row and row[0].text != "property"]
            if found[0]:
                self._refuse(found[0][0].line, "a line of a block ends with ;")
            if kind == "variable":
                self._variable(head, rows, line)
            elif kind == "probability":
                self._table(head, rows, line)
        if not self.states:
            self._refuse(self.line, "the file has no variable blocks")
        names = list(self.states)
        for name in names:
            if name not in self.tables:
                self._refuse(self.line, f"variable {name!r} has no probability block")
        number = {name: i for i, name in enumerate(names)}
        edges = tuple((number[p], number[n]) for n in names for p in self.parents[n])
        return (
            validated_graph(PlainGraph(tuple(names), edges, True)),
            self.tables,
            dict(self.states),
        )

    def _upto(self, *ends: str) -> tuple[Statement, str]:
        """Return the statement up to one of these signs outside inner braces, and that sign."""
        statement: Statement = []
        depth = 0
        while (token := next(self.tokens, None)) is not None:
            if token.sign and not depth and token.text in ends:
                return statement, token.text
            depth += {"{": 1, "}": -1}.get(token.text, 0) if token.sign else 0
            statement.append(token)
        return self._refuse(self.line, "the file ends inside a block")

    def _variable(self, head: Statement, rows: list[Statement], line: int) -> None:
        name, row = " ".join(_words(head)), rows[0] if len(rows) == 1 else []
        kind, *labels = _words(row) or [""]
        if _shape(head) != "w" or not re.fullmatch(r"ww\[w\]\{[w,]+\}", _shape(row)):
            needed = "type discrete [ 2 ] { yes, no };"
            self._refuse(line, f"variable {name!r} needs one line such as {needed}")
        if (kind, labels.pop(0)) != ("type", "discrete"):
            self._refuse(line, f"variable {name!r} is not discrete")
        if name in self.states:
            self._refuse(line, f"variable {name!r} is declared twice")
        count = labels.pop(0)
        if count != str(len(labels)):
            self._refuse(line, f"{name!r} announces {count} states and lists {len(labels)}")
        if len(set(labels)) != len(labels):
            self._refuse(line, f"{name!r} has two states of the same name")
        self.states[name] = labels

    def _table(self, head: Statement, rows: list[Statement], line: int) -> None:
        if not re.fullmatch(r"\(w(\|[w,]+)?\)", _shape(head)):
            self._refuse(line, "expected probability ( name | parents ) {")
        name, *parents = _words(head)
        for variable in (name, *parents):
            if variable not in self.states:
                self._refuse(line, f"{variable!r} is not a variable declared above")
        if name in self.tables or len({name, *parents}) <= len(parents):
            self._refuse(line, f"{name!r} has two probability blocks, or names a variable twice")
        self.parents[name] = parents
        self.tables[name] = self._values(name, parents, rows, line)

    def _values(
        self, name: str, parents: list[str], rows: list[Statement], line: int
    ) -> np.ndarray[Any, Any]:
        """Return the table: an axis for each parent, the last one for the variable itself."""
        shape = [len(self.states[variable]) for variable in (*parents, name)]
        values, default = np.full(shape, np.nan), np.full(shape[-1:], np.nan)
        for row in rows:
            start = row[0]
            if re.fullmatch(r"\([w,]*\)[w,]+", _shape(row)):
                end = next(i for i, token in enumerate(row) if token.sign and token.text == ")")
                labels = _words(row[:end])
                index = self._index(parents, labels, start.line)
                if not np.isnan(values[index]).all():
                    twice = f"two rows for ({', '.join(labels)})"
                    self._refuse(start.line, f"the table of {name!r} has {twice}")
                values[index] = self._numbers(row[end:], (shape[-1],), start.line)
            elif start.text == "table" and not start.sign:
                if not np.isnan(values).all():
                    self._refuse(start.line, f"the table of {name!r} comes after rows of its own")
                flat = self._numbers(row[1:], (shape[-1], *shape[:-1]), start.line)
                values = np.moveaxis(flat, 0, -1).copy()
            elif start.text == "default" and not start.sign:
                if not np.isnan(default).all():
                    self._refuse(start.line, f"the table of {name!r} has two default rows")
                default = self._numbers(row[1:], (shape[-1],), start.line)
            else:
                example = "expected a row such as (yes) 0.1, 0.9; or table 0.1, 0.9;"
                self._refuse(start.line, f"{example}, found {start.text!r}")
        values = np.where(np.isnan(values), default, values)
        for index in np.argwhere(np.isnan(values))[:1].tolist():
            labels = [self.states[parent][i] for parent, i in zip(parents, index, strict=False)]
            self._refuse(line, f"the table of {name!r} has no row for ({', '.join(labels)})")
        return values

    def _index(self, parents: list[str], labels: list[str], line: int) -> tuple[int, ...]:
        if len(labels) != len(parents):
            self._refuse(line, f"a row names {len(labels)} states for {len(parents)} parents")
        for variable, label in zip(parents, labels, strict=True):
            if label not in self.states[variable]:
                states = ", ".join(self.states[variable])
                self._refuse(line, f"{label!r} is not a state of {variable!r}, which has {states}")
        return tuple(
            self.states[variable].index(s) for variable, s in zip(parents, labels, strict=True)
        )

    def _numbers(
        self, row: Statement, shape: tuple[int, ...], line: int
    ) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return probabilities that sum to 1 over the first axis, up to a file's rounding."""
        words, count = _words(row), math.prod(shape)
        try:
            numbers = np.array(words, dtype=float)
        except ValueError:
            self._refuse(line, f"{' '.join(words)!r} is not a list of numbers")
        if len(numbers) != count:
            self._refuse(line, f"expected {count} numbers, found {len(numbers)}")
        if not ((numbers >= 0) & (numbers <= 1)).all():
            self._refuse(line, "a probability is a number from 0 to 1")
        table = numbers.reshape(shape[0], -1)
        for column in range(table.shape[1]):
            total = math.fsum(table[:, column].tolist())
            if abs(total - 1) > _ROUNDED:
                self._refuse(line, f"the probabilities sum to {total:.10g}, not 1")
            if abs(total - 1) > KEPT_AS_IS:
                table[:, column] /= total
        return table.reshape(shape)

    def _refuse(self, line: int, why: str) -> NoReturn:
        raise InvalidInputError(f"{self.name}, line {line}: {why}.")
