"""Transcripts are verified line by line, and refused at the first that no holdout writes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.holdout import ReusableHoldout
from quiltwork.holdout.sealed_log import chain_line, line_hash
from quiltwork.holdout.transcript import read_transcript


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    path = tmp_path_factory.mktemp("lines") / "study.jsonl"
    train, held = (np.random.default_rng(seed).random((300, 2)) for seed in (1, 2))
    h = ReusableHoldout(train, held, threshold=0.1, noise=0.0005, budget=4, path=path)

    def off(data):
        return np.where(np.isin(data[:, 0], train[:, 0]), 1.0, 0.1)

    for statistic in (lambda data: data[:, 0], off) * 2:
        h.ask(statistic)
    h.close()
    return path.read_text().splitlines()


def test_the_chain_shows_every_edit(lines):
    good = read_transcript("\n".join(lines))
    assert read_transcript("\n".join(good.lines()) + "\n") == good
    changed = lines[2].replace('"outcome": "holdout"', '"outcome": "training"')
    for damaged in (
        [*lines[:2], changed, *lines[3:]],
        [*lines[:2], *lines[3:]],
        [*lines[:3], lines[3], lines[3]],
        [lines[0].replace('"budget": 4', '"budget": 9'), *lines[1:]],
        [*lines[:4], "{}"],
        [*lines[:4], "not json"],
    ):
        assert damaged != lines
        with pytest.raises(qw.StorageError, match="Line"):
            read_transcript("\n".join(damaged))


def test_a_cut_at_the_end_shows_against_a_checkpoint(lines):
    checkpoint = read_transcript("\n".join(lines)).checkpoint
    read_transcript("\n".join(lines), checkpoint)
    with pytest.raises(qw.StorageError, match="edited or cut"):
        read_transcript("\n".join(lines[:-1]), checkpoint)


@pytest.mark.parametrize("text", ["", '{"schema": "quiltwork/other", "version": 1}', "x"])
def test_what_is_no_transcript_is_refused(text):
    with pytest.raises(qw.InvalidInputError):
        read_transcript(text)


def test_a_header_without_its_fields_is_refused():
    with pytest.raises(qw.StorageError, match="Line 1"):
        read_transcript('{"schema": "quiltwork/board", "version": 1}')


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("value", "1e10000000"),
        ("value", "1" * 5000),
        ("value", 0.5),
        ("value", "1/0"),
        ("value", "\ud800"),
        ("number", True),
        ("number", 10**400),
        ("label", None),
        ("outcome", 1),
        ("outcome", "announced"),
    ],
)
def test_lines_with_what_no_holdout_writes_are_refused_at_once(lines, field, value):
    body = json.loads(lines[1])
    del body["previous"]
    with pytest.raises(qw.StorageError, match="Line 2"):
        read_transcript("\n".join([lines[0], chained_ascii({**body, field: value}, lines[0])]))
    del body[field]
    with pytest.raises(qw.StorageError, match=f"Line 2 of the transcript lacks '{field}'"):
        read_transcript("\n".join([lines[0], chain_line(body, lines[0])]))


def chained_ascii(body, previous):
    return json.dumps({**body, "previous": line_hash(previous)})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("settings", 5),
        ("rows", 0),
        ("rows", 10**400),
        ("queries", -1),
        ("final", 5),
        ("scorings", 5),
        ("identity", 5),
        ("dataset", 5),
    ],
)
def test_a_first_line_that_no_holdout_writes_is_refused_at_once(lines, field, value):
    document = json.loads(lines[0])
    with pytest.raises(qw.StorageError, match="Line 1"):
        read_transcript(json.dumps({**document, field: value}))
    del document[field]
    with pytest.raises(qw.StorageError, match=f"Line 1 of the transcript lacks '{field}'"):
        read_transcript(json.dumps(document))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("threshold", "1e10000000"),
        ("threshold", "9" * 3000),
        ("noise", "1/" + "9" * 3000),
        ("noise", "-1"),
        ("bits", 10**9),
        ("bits", "20"),
        ("budget", None),
    ],
)
def test_settings_that_no_holdout_writes_are_refused_at_once(lines, field, value):
    document = json.loads(lines[0])
    settings = document["settings"]
    for wrong in ({**settings, field: value}, {k: v for k, v in settings.items() if k != field}):
        with pytest.raises(qw.StorageError, match="Line 1"):
            read_transcript(json.dumps({**document, "settings": wrong}))


def test_nested_lines_are_refused(lines):
    nested = '{"number": ' + "[" * 100_000
    with pytest.raises(qw.StorageError, match=r"Line 2.*recursion"):
        read_transcript("\n".join([lines[0], nested]))
    with pytest.raises(qw.InvalidInputError, match="recursion"):
        read_transcript(nested)
