"""A folder of ordinary files that commands understand, and of files that nobody should trust."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import quiltwork as qw
from evidence.fuzzing.values import JSON_VALUES, NUMBER_TEXTS
from papers.examples.hospitals import PATIENTS, table_a
from quiltwork import files
from quiltwork.cli.boundary import run
from quiltwork.counts import release_table

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
DAY = ["rest", "walk", "walk", "rest", "rest"] * 4

STUDY = (
    "holdout create study --train train.csv --holdout held.csv --id id --target label "
    "--threshold 0.2 --noise 0.005 --budget 3"
)

LABELS = "--labels held.csv --id id --target label --class no --class yes --submissions 9"
RACES = (
    f"leaderboard create race {LABELS}",
    f"leaderboard create bits {LABELS} --mode one-bit",
    "leaderboard submit race entry.json --team us",
    "leaderboard submit bits entry.json --team us",
    "leaderboard certify race --key key.pem --output certificate.json",
)


def build(folder: Path) -> None:
    """Fill an empty folder; hostile names are in `hostile_paths`."""
    _series(folder)
    _tables(folder)
    _holdout(folder)
    _hostile(folder)
    with inside(folder):
        assert run(STUDY.split()) == 0
        for line in RACES:
            assert run(line.split()) == 0
        ledger = qw.Ledger.open("sqlite:///budget.db")
        ledger.create("d", CHAIN, len(DAY), 99)
        ledger.create("people", qw.Clusters(range(6)), None, 99)
        qw.release(DAY, qw.queries.count("walk"), CHAIN, 1, ledger=ledger, dataset="d", key="k")
        ledger.create("year", CHAIN, 365, 99)
        ledger.backup("backup.jsonl")
        Path("checkpoint.json").write_text(ledger.checkpoint().to_json())
        ledger.close()


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder, and go back."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def copied(template: Path, folder: Path) -> Iterator[Path]:
    """Work in a fresh copy of a built folder, which commands may damage."""
    shutil.copytree(template, folder, symlinks=True)
    (folder / "unreadable.csv").chmod(0)
    (folder / "unsearchable").chmod(0)
    try:
        with inside(folder):
            yield folder
    finally:
        (folder / "unsearchable").chmod(0o700)
        shutil.rmtree(folder)


def hostile_paths() -> list[str]:
    """Names to read from or write to, relative to the folder; none of them reaches outside it."""
    return [
        "",
        ".",
        "/proc",
        "missing.csv",
        "missing/deep.csv",
        "folder",
        "loop",
        "dangling",
        "unreadable.csv",
        "unsearchable/file.csv",
        "/dev/null",
        "/dev/full",
        "/dev/zero",
        "empty.csv",
        "header.csv",
        "ragged.csv",
        "twice.csv",
        "binary.csv",
        "binary.json",
        "wide.csv",
        "numbers.csv",
        "deep.json",
        "long-number.json",
        "not-a-number.json",
        "list.json",
        "surrogate.json",
        "bomb.csv.gz",
        "cut.csv.gz",
        "plain.csv.gz",
        "people.parquet",
        "n" * 300,
        "n/" * 3000,
        "\udcff.csv",
        "naïve ☃.csv",
        "-",
    ]


def damage(path: Path, rng: np.random.Generator) -> None:
    """Change one thing in a file: a field of a document, a cell of a table, or some bytes."""
    if path.suffix == ".jsonl":
        lines = path.read_text(encoding="utf-8").splitlines()
        at = int(rng.integers(len(lines)))
        lines[at] = json.dumps(_damaged(json.loads(lines[at]), rng))
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif path.suffix == ".json":
        document = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(_damaged(document, rng)), encoding="utf-8")
    elif path.suffix == ".csv":
        rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
        row = rows[int(rng.integers(len(rows)))]
        row[int(rng.integers(len(row)))] = str(rng.choice(NUMBER_TEXTS))
        path.write_text("\n".join(",".join(row) for row in rows) + "\n", encoding="utf-8")
    else:
        content = bytearray(path.read_bytes())
        for at in rng.integers(len(content), size=20):
            content[at] = int(rng.integers(256))
        path.write_bytes(bytes(content[: int(rng.integers(1, len(content) + 1))]))


def _damaged(document: Any, rng: np.random.Generator) -> Any:
    """Replace, or take away, one part of a document, at any depth."""
    inner = list(document) if isinstance(document, dict) else range(len(document))
    keys = [key for key in inner if key != "schema"]
    if not keys:
        return document
    key = keys[int(rng.integers(len(keys)))]
    if isinstance(document[key], (dict, list)) and document[key] and rng.random() < 0.6:
        document[key] = _damaged(document[key], rng)
    elif rng.random() < 0.25:
        del document[key]
    else:
        document[key] = JSON_VALUES[int(rng.integers(len(JSON_VALUES)))]
    return document


def _series(folder: Path) -> None:
    belief = folder / "chain.json"
    belief.write_text(CHAIN.to_json())
    (folder / "box.json").write_text(
        qw.ChainBox([[0.8, 0.0], [0.3, 0.5]], [[1.0, 0.2], [0.5, 0.7]], CHAIN.states).to_json()
    )
    (folder / "numbered.json").write_text(qw.MarkovChain(CHAIN.transition).to_json())
    (folder / "homes.json").write_text(qw.Clusters([1, 1, 2, 3, 3, 4]).to_json())
    released = qw.release(DAY, qw.queries.histogram(), CHAIN, epsilon=1)
    (folder / "release.json").write_text(released.to_json())
    lines = [f"{i // 10},{600 * i},{s},{i % 7}.5,{i % 2}" for i, s in enumerate(DAY)]
    (folder / "series.csv").write_text("\n".join(["who,when,state,heat,on", *lines]) + "\n")
    sexes = [f"{i // 2},{'fm'[i % 2]},{20 + i}" for i in range(6)]
    (folder / "people.csv").write_text("\n".join(["id,sex,age", *sexes]) + "\n")
    (folder / "released.csv").write_text("count\n3\n5\n-1\n")
    counts = json.loads(release_table({"f": 3, "m": 2}, epsilon=1).to_json())
    (folder / "counts.json").write_text(files.dump("counts", 1, {"table": counts}))
    (folder / "prior.csv").write_text("0.5\n0.25\n0.25\n")


def _tables(folder: Path) -> None:
    frame = table_a().frame
    names = frame.column_names
    rows = [",".join(map(str, row.values())) for row in frame.to_pylist()]
    (folder / "table.csv").write_text("\n".join([",".join(names), *rows]) + "\n")
    kept = [[str(v) for k, v in row.items() if k != "hospital"] for row in frame.to_pylist()]
    header = [name for name in names if name != "hospital"]
    (folder / "published.csv").write_text("\n".join(map(",".join, [header, *kept])) + "\n")
    for hospital in ("P1", "P2"):
        own = [f"{p[2]},{p[3]},{p[4]}" for p in PATIENTS if p[0] == hospital]
        (folder / f"{hospital}.csv").write_text("\n".join(["age,zip,disease", *own]) + "\n")


def _holdout(folder: Path) -> None:
    for name, first in (("train", 0), ("held", 60)):
        rows = [
            f"{i},{i % 80},{i // 4},{'yes' if i % 2 else 'no'}" for i in range(first, first + 60)
        ]
        (folder / f"{name}.csv").write_text("\n".join(["id,age,home,label", *rows]) + "\n")
    guesses = [f"{i},yes" for i in range(120)]
    (folder / "guesses.csv").write_text("\n".join(["id,prediction", *guesses]) + "\n")
    entry = {str(i): "yes" for i in range(60, 120)}
    (folder / "entry.json").write_text(json.dumps(entry))


def _hostile(folder: Path) -> None:
    (folder / "folder").mkdir()
    (folder / "unsearchable").mkdir()
    (folder / "unsearchable" / "file.csv").write_text("a\n1\n")
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "unreadable.csv").write_text("a\n1\n")
    texts = {
        "empty.csv": "",
        "header.csv": "id,sex,age\n",
        "ragged.csv": "id,sex\n1\n2,f,3\n",
        "twice.csv": "sex,sex\nf,m\n",
        "wide.csv": "state\n" + "x" * 200_000 + "\n",
        "numbers.csv": "state,heat\n" + "".join(f"{text},{text}\n" for text in NUMBER_TEXTS),
        "deep.json": "[" * 100_000 + "]" * 100_000,
        "long-number.json": '{"schema": "quiltwork/chain", "version": ' + "1" * 10_000 + "}",
        "not-a-number.json": '{"schema": "quiltwork/chain", "version": 1, "transition": NaN}',
        "list.json": "[]",
        "surrogate.json": '{"schema": "quiltwork/\\udcff", "\\ud800": "\\udfff"}',
        "naïve ☃.csv": "é,☃\n1,2\n",
        "plain.csv.gz": "a\n1\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 20)
    (folder / "binary.json").write_bytes(b"\xff\xfe\x00" * 50)
    packed = gzip.compress(b"state\n" + b"x" * 30_000_000)
    (folder / "bomb.csv.gz").write_bytes(packed)
    (folder / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    (folder / "people.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
