"""Anonymization of Adult against a 40-line NumPy Mondrian, and its growth.

    python -m bench.bench_anonymize            # everything
    python -m bench.bench_anonymize 10000000   # growth up to this many rows
    python -m bench.bench_anonymize providers  # provider-aware against baseline, ten distributions

Needs Adult in the folder that QUILTWORK_SHARED names, or in ../shared. GCP is given twice: as
`metrics.loss` defines it (sets of categories count their members), and by ranges of codes, which is
what Mondrian programs usually report. On ARX's eight columns in alphabetical order the reference
has a GCP of 0.1008 by ranges and a discernibility of 2.42e6; other programs' published figures for
the same job are 0.1108 to 0.1115 and 2.54e6 (medians and orders of categories differ).
"""

from __future__ import annotations

import csv
import os
import resource
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray

from bench.harness import RESULTS, compare
from quiltwork.tables import (
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    Table,
    TCloseness,
    anonymize,
    query_error,
    verify_m_privacy,
)
from quiltwork.tables.metrics.loss import publication_loss
from quiltwork.tables.metrics.query_error import errors_of_queries

ROOT = Path(__file__).resolve().parent.parent
QUASI = ("age", "workclass", "education", "marital-status", "race", "sex", "native-country")
QUASI += ("income",)
CONSTRAINT = KAnonymity(30) & LDiversity(4)
CONSTRAINTS = (
    LDiversity(4),
    EntropyLDiversity(3),
    RecursiveLDiversity(3, 4),
    TCloseness(0.4),
    TCloseness(0.2, "ordered"),
)


def adult() -> pandas.DataFrame:
    folder = Path(os.environ.get("QUILTWORK_SHARED") or ROOT.parent / "shared")
    frame = pandas.read_csv(folder / "data" / "adult.csv.gz")
    return frame[~(frame == "?").any(axis=1)].reset_index(drop=True)


def plain_mondrian(
    codes: NDArray[np.int64],
    sensitive: NDArray[np.int64],
    k: int,
    l: int,  # noqa: E741
) -> list[NDArray[np.int64]]:
    """The reference: a stack of nodes, medians by partition, distinct values by `unique`."""
    spans = (codes.max(0) - codes.min(0)).astype(float)
    groups, stack = [], [np.arange(len(codes))]
    while stack:
        rows = stack.pop()
        here, half = codes[rows], len(rows) / 2
        widths = (here.max(0) - here.min(0)) / spans
        for axis in np.argsort(-widths, kind="stable"):
            if widths[axis] <= 0:
                groups.append(rows)
                break
            column = here[:, axis]
            median = np.partition(column, len(rows) // 2)[len(rows) // 2]
            left, below = column <= median, column < median
            if abs(below.sum() - half) < abs(left.sum() - half):
                left = below
            one, two = rows[left], rows[~left]
            if min(len(one), len(two)) >= k and all(
                len(np.unique(sensitive[side])) >= l for side in (one, two)
            ):
                stack += [one, two]
                break
        else:
            groups.append(rows)
    return groups


def plain_codes(frame: pandas.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return quasi-identifiers and sensitive values as the reference takes them."""
    columns = [
        frame[name].to_numpy()
        if frame[name].dtype.kind in "iuf"
        else np.unique(frame[name].astype(str).to_numpy(dtype=object), return_inverse=True)[1]
        for name in QUASI
    ]
    sensitive = np.unique(frame["occupation"].to_numpy(dtype=object), return_inverse=True)[1]
    return np.stack(columns, axis=1).astype(np.int64), sensitive


def gcp_by_ranges(codes: NDArray[np.int64], groups: list[NDArray[np.int64]]) -> float:
    spans = codes.max(0) - codes.min(0)
    lost = sum(len(g) * ((codes[g].max(0) - codes[g].min(0)) / spans).sum() for g in groups)
    return float(lost) / codes.size


def by_frequency(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Order the codes of categories as `records_of` does; age keeps its own order."""
    result = codes.copy()
    for axis in range(1, codes.shape[1]):
        counts = np.bincount(codes[:, axis])
        rank = np.empty(len(counts), dtype=np.int64)
        rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
        result[:, axis] = rank[codes[:, axis]]
    return result


def members(publication: Any) -> list[NDArray[np.int64]]:
    order = np.argsort(publication.labels, kind="stable")
    return np.split(publication.rows[order], np.cumsum(publication.sizes)[:-1])


def bench_one_provider(frame: pandas.DataFrame) -> None:
    table = Table(frame, None, QUASI, "occupation")
    codes, sensitive = plain_codes(frame)
    _ = table.encoded
    run = partial(anonymize, table, CONSTRAINT, 0)
    compare(
        "Adult, one provider, k = 30, l = 4",
        {
            "quiltwork": lambda: run().frame,
            "numpy mondrian (groups only)": lambda: plain_mondrian(codes, sensitive, 30, 4),
            "quiltwork, split=range": lambda: run(split="range").frame,
        },
        repeats=5,
    )
    groups = plain_mondrian(codes, sensitive, 30, 4)
    alike = sum(len(g) ** 2 for g in groups)
    rows = [("numpy mondrian", len(groups), "", gcp_by_ranges(codes, groups), alike, "")]
    ordered = by_frequency(codes)
    for name, options in (
        ("default", {}),
        ("split=range", {"split": "range"}),
    ):
        publication = run(**options)
        loss = publication_loss(publication)
        ranges = gcp_by_ranges(ordered, members(publication))
        error = query_error(table, publication)
        rows.append((name, len(publication.groups), loss.gcp, ranges, loss.discernibility, error))
    header = ("mode", "groups", "gcp", "gcp by ranges", "discernibility", "query error")
    publish("anonymize-adult-one-provider", header, rows)


def bench_ten_providers(frame: pandas.DataFrame) -> None:
    rng = np.random.default_rng(7)
    owner = rng.integers(0, 10, len(frame))
    table = Table(frame.assign(provider=owner), "provider", QUASI, "occupation")
    alone = Table(frame, None, QUASI, "occupation")
    _ = table.encoded, alone.encoded
    methods: dict[str, dict[str, Any]] = {
        "provider-aware": {},
        "baseline": {"method": "baseline"},
        "fitness": {"split": "fitness"},
        "separate": {"method": "separate"},
    }
    contestants = {
        f"quiltwork, {name}": partial(anonymize, table, CONSTRAINT, 3, **options)
        for name, options in methods.items()
    }
    codes, sensitive = plain_codes(frame)
    contestants["numpy mondrian, m = 0"] = lambda: plain_mondrian(codes, sensitive, 30, 4)
    compare("Adult, ten providers, m = 3, k = 30, l = 4", contestants, repeats=5)
    rows = []
    for name, options in methods.items():
        publication = anonymize(table, CONSTRAINT, 3, **options)
        loss = publication_loss(publication)
        error = query_error(table, publication)
        rows.append((name, len(publication.groups), loss.gcp, loss.discernibility, error))
    header = ("method", "groups", "gcp", "discernibility", "query error")
    publish("anonymize-adult-ten-providers", header, rows)


def bench_constraints(frame: pandas.DataFrame) -> None:
    """Every constraint beside k = 30, ten providers; with people in about 1.25 records each."""
    rng = np.random.default_rng(7)
    frame = frame.assign(
        provider=rng.integers(0, 10, len(frame)),
        person=rng.integers(0, len(frame) * 4 // 5, len(frame)),
    )
    order = {"occupation": sorted(frame["occupation"].unique())}
    rows = []
    for subject in (None, "person"):
        table = Table(frame, "provider", QUASI, "occupation", subject=subject, ordinal=order)
        _ = table.encoded
        for part in CONSTRAINTS:
            for m in (0, 1, 3):
                start = time.process_time()
                publication = anonymize(table, KAnonymity(30) & part, m)
                made = time.process_time()
                assert verify_m_privacy(publication.table, KAnonymity(30) & part, m).private
                times = (made - start, time.process_time() - made)
                rows.append((subject or "", str(part), m, len(publication.groups), *times))
    header = ("subject", "constraint", "m", "groups", "cpu seconds", "to verify again")
    publish("anonymize-adult-constraints", header, rows)


def owners(frame: pandas.DataFrame, how: str, providers: int) -> NDArray[np.int64]:
    """Give rows to providers: in shares of a distribution, or in the order of a column."""
    rng = np.random.default_rng(7)
    if how in QUASI:
        mixed = rng.permutation(len(frame))
        order = mixed[np.argsort(frame[how].to_numpy()[mixed], kind="stable")]
        owner = np.empty(len(frame), dtype=np.int64)
        owner[order] = np.arange(len(frame)) * providers // len(frame)
        return owner
    rank = np.arange(1, providers + 1)
    shares = {"uniform": rank**0.0, "zipf": 1 / rank, "exponential": np.exp(-4 * rank / providers)}
    return rng.choice(providers, len(frame), p=shares[how] / shares[how].sum())


def bench_provider_splits(frame: pandas.DataFrame, rows: int = 5000) -> None:
    """Query error, provider-aware against baseline, for the same 2,500 queries."""
    frame = frame.sample(rows, random_state=1).reset_index(drop=True)
    splits: dict[str, dict[str, Any]] = {name: {"split": name} for name in ("range", "loss")}
    splits |= {"fitness": {"split": "fitness"}, "relaxed": {"relaxed": True}}
    found = []
    for how in ("uniform", "exponential", "zipf", *QUASI):
        for providers in (3, 10, 30, 100):
            owner = owners(frame, how, providers)
            table = Table(frame.assign(provider=owner), "provider", QUASI, "occupation")
            for m in range(1, min(7, providers)):
                for name, options in splits.items():
                    pair = [
                        anonymize(table, CONSTRAINT, m, method, **options)
                        for method in ("baseline", "provider-aware")
                    ]
                    one, two = (errors_of_queries(table, made, 2500, 0) for made in pair)
                    doubt = float(np.std(two - one)) / 50
                    gap = float(np.mean(two - one))
                    sigmas = gap / doubt if doubt else 0.0
                    groups = [len(made.groups) for made in pair]
                    mean = float(one.mean()), float(two.mean())
                    alone = pair[1].of_one_provider == groups[1]
                    found.append((how, providers, m, name, *groups, *mean, sigmas, alone))
                    print(*found[-1], flush=True)
    header = ("providers by", "providers", "m", "split", "groups, baseline", "provider-aware")
    header += ("query error, baseline", "provider-aware", "difference in standard errors")
    header += ("just separate",)
    publish("anonymize-provider-splits", header, found)
    for name in splits:
        ratio = np.array([row[7] / row[6] for row in found if row[3] == name])
        worst = max(row[8] for row in found if row[3] == name)
        alone = sum(row[9] for row in found if row[3] == name)
        print(
            f"{name}: {len(ratio)} cases, {(ratio < 1).sum()} better, {(ratio > 1).sum()} worse, "
            f"{alone} just separate; ratio {ratio.min():.3f} to {ratio.max():.3f}, at most "
            f"{worst:.1f} standard errors"
        )


def enlarged(frame: pandas.DataFrame, rows: int) -> pandas.DataFrame:
    """Adult drawn again with noise on age and on what is sensitive, as compact columns."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, len(frame), rows)
    columns: dict[str, Any] = {
        "age": np.clip(frame["age"].to_numpy()[drawn] + rng.integers(-2, 3, rows), 17, 90)
    }
    for name in (*QUASI[1:], "occupation"):
        kind = pandas.Categorical(frame[name].astype(object))
        codes = kind.codes[drawn]
        if name == "occupation":
            mixed = rng.random(rows) < 0.5
            codes = np.where(mixed, rng.permutation(codes), codes)
        columns[name] = pandas.Categorical.from_codes(codes, kind.categories)
    return pandas.DataFrame(columns)


def bench_growth(frame: pandas.DataFrame, most: int) -> None:
    """One run per size, each in a child that reports its time and peak memory."""
    rows = []
    for method in ("baseline", "provider-aware"):
        for providers in ("10", "one per record"):
            limit = most if providers == "10" else min(most, 1_000_000)
            size = 10_000
            while size <= limit:
                measured = _measured_in_child(frame, size, providers, method)
                rows.append((method, providers, size, *measured))
                size *= 10
    header = ("method", "providers", "rows", "cpu seconds", "peak MiB over the frame")
    publish("anonymize-growth", (*header, "frame MiB", "groups"), rows)


def _measured_in_child(
    frame: pandas.DataFrame, size: int, providers: str, method: Any
) -> tuple[float, float, float, int]:
    receive, send = os.pipe()
    if os.fork() == 0:
        large = enlarged(frame, size)
        own = providers == "one per record"
        large["provider"] = np.arange(size) if own else np.arange(size) % 10
        mebibytes = float(large.memory_usage(deep=True).sum()) / 2**20
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start = time.process_time()
        table = Table(large, "provider", QUASI, "occupation")
        publication = anonymize(table, CONSTRAINT, 3, method)
        _ = publication.frame
        seconds = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
        text = f"{seconds} {peak} {mebibytes} {len(publication.groups)}"
        os.write(send, text.encode())
        os._exit(0)
    os.wait()
    seconds, peak, mebibytes, groups = os.read(receive, 1000).decode().split()
    return float(seconds), float(peak), float(mebibytes), int(groups)


def publish(name: str, header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    def text(cell: Any) -> Any:
        return f"{cell:.4g}" if isinstance(cell, float) else cell

    with (RESULTS / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([text(cell) for cell in row] for row in rows)
    print(name)
    for row in (header, *rows):
        print("  " + ", ".join(str(text(cell)) for cell in row))


def main(arguments: list[str]) -> None:
    frame = adult()
    if arguments == ["providers"]:
        bench_provider_splits(frame)
        return
    if not arguments:
        bench_one_provider(frame)
        bench_ten_providers(frame)
        bench_constraints(frame)
    bench_growth(frame, int(arguments[0]) if arguments else 1_000_000)


if __name__ == "__main__":
    main(sys.argv[1:])
