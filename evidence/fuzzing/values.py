"""Values that nobody means, as people type them, as documents hold them and as Python has them."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd


class Theirs(Exception):  # noqa: N818  (what a user's own function raises, and may see again)
    """Raised by functions given as arguments."""


def failing(*_: Any) -> Any:
    raise Theirs


NUMBER_TEXTS = (
    "nan", "inf", "-inf", "-1", "0", "-0", "1", "2", "0.5", "1e400", "-1e400", "1e-400",
    "1e99999999", "9" * 400, "9" * 5000, "0x10", "1_000", "١", "1/0", "1/3", "0.1.2", "", " ",
    "1e308", "5e-324", "1000000000000", "4294967296", "-2147483649", "2**8", "1,5", "1e-9",
    "0.9999999999999999",
)  # fmt: skip

TEXTS = (
    "", " ", "\t", "a\nb", "é☃𝔘", "\udcff", "‮", "a" * 5000, "=1+1", "-", "--", "@", "@missing",
    "@folder", "@loop", "@binary.csv", "%s", "{}", "'", '"', '"a', ",", ",,", "a,a", "a=b", "=",
    "a=", ":", "::", "1:2", "2:1", "0:0", "-1:5", "1:" + "9" * 400, "count:", "count:☃",
    "mean:0:0", "mean:1:nan", "sum:1e400:2", "mean:0:" + "9" * 400, "power:-1",
    "power:" + "9" * 400, "power:1e300", "asymmetric:0:0", "binomial:2", "binomial:nan",
    "poisson:1e300", "poisson:" + "9" * 400, "x>=nan", "x>=1e400", "x=", "histogram@0",
    "histogram@" + "9" * 400, "0s", "-5min", "1e9h",
    "99999999999999999999d", "null", "None", "True", "NaN", "sqlite://", "sqlite:///",
    "sqlite:///folder", "sqlite:///loop", "sqlite:///missing/x.db", "sqlite:////dev/full",
    "sqlite:///binary.csv", "sqlite:///empty.csv", "sqlite:///\udcff.db", "mysql://x",
    "sqlite:///" + "n" * 300, "sqlite:///unsearchable/x.db",
    "postgresql://nobody:secret@127.0.0.1:1/none?connect_timeout=1", "postgresql://[::1", "http://x",
)  # fmt: skip

JSON_VALUES = (
    None, True, 0, -1, 1, 0.5, 1e308, -1e308, 10**400, 2**63, "", "x", "nan", "1/0", "-1/3",
    "1e400", "1e99999999", "9" * 5000, "\ud800", "é" * 2000, [], {}, [[]], [None], [[1, 2], [3]],
    {"a": None},    [0.5, 0.5], ["a", "a"], {"": {}}, "2020-13-45", [1e400], [float("nan")],
)  # fmt: skip


def _structured() -> Any:
    return np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])


HOSTILE: tuple[Callable[[], Any], ...] = tuple(
    [
        lambda value=value: value  # type: ignore[misc]
        for value in (
            None,
            True,
            False,
            0,
            -1,
            1,
            2,
            7,
            -0.0,
            0.5,
            1.0,
            1e-320,
            1e308,
            1e-9,
            math.nan,
            math.inf,
            -math.inf,
            10**12,
            2**63,
            -(2**63),
            10**400,
            -(10**400),
            Fraction(1, 3),
            Fraction(1, 10**400),
            Fraction(10**400 + 1, 10**400),
            Decimal("NaN"),
            Decimal("sNaN"),
            Decimal("Infinity"),
            Decimal("1e9999999"),
            Decimal("1e-9999999"),
            Decimal("0.1"),
            1j,
            np.int8(-1),
            np.int64(5),
            np.uint64(2**64 - 1),
            np.float32("nan"),
            np.float64(0.5),
            np.bool_(True),
            np.str_("x"),
            np.datetime64("NaT"),
            np.ma.masked,
            "",
            " ",
            "x",
            "a",
            "walk",
            "\udcff",
            "\0",
            "é☃𝔘",
            "n" * 100_000,
            "nan",
            "1",
            "=1+1",
            b"",
            b"\xff\xfe",
            bytearray(b"x"),
            date(2020, 1, 1),
            datetime(2020, 1, 1, tzinfo=UTC),
            Path("missing"),
            Path(),
            pd.NA,
            pd.NaT,
            (),
            (1,),
            (1, 2),
            (2, 1),
            (0, 0),
            (1, 10**400),
            (math.nan, 1),
            ("a", "b"),
            range(0),
            object(),
            Ellipsis,
            NotImplemented,
            ValueError("x"),
            frozenset(),
            slice(1, 2),
        )
    ]
    + [
        list,
        dict,
        set,
        _structured,
        lambda: [[]],
        lambda: [[1, 2], [3]],
        lambda: [None],
        lambda: [math.nan, 1.0],
        lambda: [0.5, 0.5],
        lambda: [1, 2, 3],
        lambda: [10**400, 1],
        lambda: ["walk", "rest", "walk"],
        lambda: ["walk", None],
        lambda: [[0.5, 0.5], [0.5, 0.5]],
        lambda: [[1.0, math.inf], [0.0, 1.0]],
        lambda: [["a", "b"], ["c", "d"]],
        lambda: {"a": 1, "b": 2},
        lambda: {"a": math.nan},
        lambda: {None: None},
        lambda: {1: [1, 2]},
        lambda: {"\udcff": "\ud800"},
        lambda: {"a", "b"},
        lambda: iter([1, 2]),
        lambda: (x for x in "ab"),
        lambda: np.array(5),
        lambda: np.array([]),
        lambda: np.zeros((0, 3)),
        lambda: np.zeros((2, 2, 2)),
        lambda: np.eye(3),
        lambda: np.array([1, None, "x"], dtype=object),
        lambda: np.array([1 + 1j, 2]),
        lambda: np.array(["2020", "NaT"], dtype="M8[s]"),
        lambda: np.array([np.nan, np.inf]),
        lambda: np.ma.array([1, 2], mask=[0, 1]),
        lambda: np.array([1, 2], dtype=">i2"),
        lambda: pd.Series([1, None, 3]),
        lambda: pd.Series(["a", pd.NA]),
        lambda: pd.Series([], dtype=float),
        lambda: pd.DataFrame({"a": [1, 2], "b": ["x", None]}),
        lambda: pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]),
        lambda: pd.DataFrame(),
        lambda: pd.Categorical(["a", None]),
        lambda: nx.DiGraph([(1, 2), (2, 1)]),
        lambda: failing,
        lambda: lambda *_: math.nan,
        lambda: lambda *_: None,
        lambda: lambda *_: 10**400,
    ]
)
"""Makers of values: what one call may change or use up is made anew for the next."""
