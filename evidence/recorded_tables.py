"""What is published of many tables, recorded from one version and compared with another.

Questions follow from their number: tables of numbers, orders, sets, hierarchies, missing values and
people with several records, alike or unlike providers, every constraint, method, split and option;
then samples of Adult. Nothing but public names is used, so that an older version can record.

    python -m evidence.recorded_tables record FILE [first] [stop]
    python -m evidence.recorded_tables compare FILE [first] [stop]
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import quiltwork as qw
from quiltwork.tables import (
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    Table,
    TCloseness,
    anonymize,
    max_m,
    query_error,
)

QUESTIONS = 1200
ADULT = 60
"""So many questions more are about Adult."""
METHODS = ("provider-aware", "provider-aware", "provider-aware", "baseline", "separate")
TOWNS = ["Zürich", "Łódź", "東京", "a, b", "{x}", "1..2", "=1+1"]
KNOWN = ["age", "workclass", "education", "marital-status", "race", "sex", "native-country"]


def random_rows(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """Rows of some providers, who may be unlike in size and in what they see."""
    providers = int(rng.choice([2, 3, 5, 12]))
    share = rng.dirichlet(np.full(providers, rng.choice([0.5, 5.0])))
    owner = rng.choice(providers, rows, p=share)
    shift = rng.choice([0, 8]) * owner
    return pd.DataFrame(
        {
            "owner": [f"P{one}" for one in owner],
            "age": rng.integers(18, 60, rows) + shift,
            "weight": rng.normal(70, 12, rows).round(1),
            "town": rng.choice(TOWNS, rows),
            "grade": rng.choice(["low", "middle", "high"], rows),
            "zip": [f"{number:05d}" for number in rng.integers(1000, 1040, rows)],
            "ill": rng.choice([f"d{one}" for one in range(int(rng.integers(3, 9)))], rows),
            "paid": rng.choice(["yes", "no"], rows),
            "person": rng.integers(0, max(2, rows * 4 // 5), rows),
        }
    )


def adult(rng: np.random.Generator) -> pd.DataFrame:
    """A sample of Adult's complete rows, dealt out to ten providers by chance or by age."""
    folder = Path(os.environ["QUILTWORK_SHARED"])
    frame = pd.read_csv(folder / "data" / "adult.csv.gz")
    frame = frame[~(frame == "?").any(axis=1)]
    frame = frame.sample(4000, random_state=int(rng.integers(1 << 30))).reset_index(drop=True)
    owner = rng.integers(0, 10, len(frame))
    if rng.random() < 0.5:
        owner = (frame["age"].rank(method="first").to_numpy().astype(int) - 1) * 10 // len(frame)
    return frame.assign(owner=owner)


def constraint_of(rng: np.random.Generator) -> Any:
    """k-anonymity alone, or with one more."""
    asked = KAnonymity(int(rng.choice([1, 2, 3, 5, 10])))
    others = (
        None,
        LDiversity(int(rng.integers(2, 4))),
        LDiversity(2),
        EntropyLDiversity(Fraction(int(rng.integers(5, 9)), 4)),
        RecursiveLDiversity(Fraction(int(rng.integers(4, 13)), 2), 2),
        TCloseness(Fraction(int(rng.integers(4, 9)), 10)),
        TCloseness(Fraction(int(rng.integers(3, 9)), 10), "ordered"),
    )
    part = others[int(rng.integers(len(others)))]
    return asked if part is None else asked & part


def question_of(number: int) -> tuple[str, Table, dict[str, Any]]:
    """What a number asks: in words, of which table, with which arguments of `anonymize`."""
    rng = np.random.default_rng([38, number])
    options: dict[str, Any] = {"method": str(rng.choice(METHODS))}
    options |= [{}, {}, {"split": "range"}, {"split": "fitness"}, {"split": "loss"}][
        int(rng.integers(5))
    ]
    if rng.random() < 0.2:
        options["suppression"] = float(rng.choice([0.01, 0.1, 0.5]))
    if number >= QUESTIONS:
        frame = adult(rng)
        table = Table(frame, "owner", KNOWN, "occupation")
        asked = KAnonymity(int(rng.choice([5, 30]))) & LDiversity(int(rng.choice([2, 4])))
        options |= {"constraint": asked, "m": int(rng.integers(0, 5))}
        return f"{number}: Adult, {options}", table, options
    frame = random_rows(rng, int(rng.choice([20, 60, 200, 600])))
    if rng.random() < 0.2:
        frame.loc[rng.random(len(frame)) < 0.05, "weight"] = np.nan
    known = rng.permutation(["age", "weight", "town", "grade", "zip"])
    quasi = list(map(str, known[: rng.integers(1, 5)]))
    declared: dict[str, Any] = {"missing": "value"}
    declared["ordinal"] = {"ill": sorted(frame["ill"].unique())}
    if "grade" in quasi and rng.random() < 0.5:
        declared["ordinal"]["grade"] = ["low", "middle", "high"]
    if "zip" in quasi and rng.random() < 0.5:
        declared["hierarchies"] = {"zip": qw.tables.Hierarchy.prefixes(frame["zip"], [4, 3])}
    several = rng.random() < 0.15
    sensitive: Any = ["ill", "paid"] if several else "ill"
    if rng.random() < 0.15:
        declared["subject"] = "person"
    looks = options.get("split") == "fitness"
    if rng.random() < 0.1 and "subject" not in declared and not looks:
        options["blind"] = True
    elif rng.random() < 0.1:
        options["relaxed"] = True
    asked = constraint_of(rng)
    if several and "ordered" in str(asked):
        asked = KAnonymity(3)
    options |= {"constraint": asked, "m": int(rng.integers(0, 4))}
    words = f"{number}: {len(frame)} rows, {quasi} {sorted(declared)}, {options}"
    return words, Table(frame, "owner", quasi, sensitive, **declared), options


def answered(number: int) -> dict[str, Any]:
    """What is published: a digest of it, its groups, its error, and what it withstands."""
    words, table, options = question_of(number)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = anonymize(table, **options)
            text = made.frame.to_csv(index=False)
            try:
                error = query_error(table, made, 300)
            except qw.InvalidInputError:  # all queries are empty
                error = -1.0
            found = {
                "digest": hashlib.sha256(text.encode()).hexdigest()[:16],
                "groups": len(made.groups),
                "left out": made.suppressed,
                "error": round(error, 9),
                "max m": int(max_m(made.table, options["constraint"])),
            }
    except qw.QuiltworkError as refusal:
        found = {"refused": type(refusal).__name__}
    return {"number": number, "words": words, **found}


def record(file: Path, numbers: range) -> None:
    """Append the answers, a line each."""
    with file.open("a") as lines:
        for number in numbers:
            lines.write(json.dumps(answered(number)) + "\n")
            lines.flush()


def differences(file: Path, numbers: range) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Give every answer as it was recorded, and as it is now."""
    for line in file.read_text().splitlines():
        old = json.loads(line)
        if old["number"] in numbers:
            yield old, answered(old["number"])


def compare(file: Path, numbers: range) -> int:
    """Print what differs; how many tables are refused, leave out more or answer worse than were."""
    same = better = worse = refused = 0
    for old, new in differences(file, numbers):
        del old["words"]
        words = new.pop("words")
        if old == new:
            same, refused = same + 1, refused + ("refused" in old)
            continue
        gained = "refused" in old or (
            "refused" not in new
            and new["left out"] <= old["left out"]
            and new["error"] <= old["error"]
        )
        better, worse = better + gained, worse + (not gained)
        print(f"{'other' if gained else 'WORSE'} {words}\n  {old}\n  {new}", flush=True)
    print(f"{same} the same ({refused} of them refused), {better} as good or better, {worse} worse")
    return worse


if __name__ == "__main__":
    action, path, *ends = sys.argv[1:]
    wanted = range(*(int(one) for one in ends)) if ends else range(QUESTIONS + ADULT)
    if action == "record":
        record(Path(path), wanted)
    else:
        sys.exit(compare(Path(path), wanted) > 0)
