"""Transcripts on disk: resumed, verified, and nothing regained by interrupting."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.holdout import ReusableHoldout
from quiltwork.holdout.sealed_log import line_hash, secret_path
from quiltwork.holdout.transcript import load_transcript, read_transcript
from tests.holdout.small import HELD, TRAIN, create, off, resume, same


def test_a_holdout_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "study.jsonl"
    h = create(path)
    first = h.ask(off, label="first")
    h.ask(same)
    threshold = h._secret.threshold
    h.close()
    again = resume(path)
    assert (again.remaining, again.asked, again._secret.threshold) == (3, 2, threshold)
    assert again.transcript.entries[0].value == first.exact
    assert again.transcript == load_transcript(path)
    assert again.transcript.entries[0].label == "first"


@pytest.mark.parametrize(
    "label", ["a\u0085b", "a\u2028b\u2029", "a\x0b\x0c\x1c\x1d\x1eb", "a\r\nb\n"]
)
def test_labels_may_hold_every_character_that_ends_a_line(tmp_path, label):
    path = tmp_path / "study.jsonl"
    h = create(path)
    h.ask(same, label=label)
    h.close()
    again = resume(path)
    again.ask(same)
    again.close()
    assert [e.label for e in load_transcript(path).entries] == [label, ""]


def test_beliefs_and_settings_come_back_without_the_names_of_clusters(tmp_path):
    path = tmp_path / "study.jsonl"
    names = [f"family {i // 3}" for i in range(300)]
    create(path, beliefs=qw.Clusters(names), queries=50).close()
    again = resume(path)
    assert "family" not in path.read_text()
    assert again.beliefs[0].largest == 3
    assert again.queries == 50


def test_only_one_process_may_hold_it(tmp_path):
    h = create(tmp_path / "study.jsonl")
    with pytest.raises(qw.StorageError, match="in use"):
        resume(tmp_path / "study.jsonl")
    with pytest.raises(qw.StorageError, match="exists already"):
        create(tmp_path / "study.jsonl")
    h.close()


def test_other_data_are_refused(tmp_path):
    create(tmp_path / "study.jsonl").close()
    changed = HELD.copy()
    changed[0, 0] += 1e-9
    with pytest.raises(qw.StorageError, match="other data"):
        ReusableHoldout.resume(tmp_path / "study.jsonl", TRAIN, changed)
    resume(tmp_path / "study.jsonl")


def test_missing_files_are_named(tmp_path):
    with pytest.raises(qw.InvalidInputError, match="no transcript"):
        resume(tmp_path / "nothing.jsonl")
    create(tmp_path / "study.jsonl").close()
    secret_path(tmp_path / "study.jsonl").unlink()
    with pytest.raises(qw.StorageError, match="missing or damaged"):
        resume(tmp_path / "study.jsonl")


def test_the_secret_is_for_its_owner_only(tmp_path):
    create(tmp_path / "study.jsonl").ask(same)
    for file in (tmp_path / "study.jsonl", secret_path(tmp_path / "study.jsonl")):
        assert file.stat().st_mode & 0o777 == 0o600
    text = (tmp_path / "study.jsonl").read_text()
    hidden = json.loads(secret_path(tmp_path / "study.jsonl").read_text())
    assert hidden["key"] not in text
    assert str(hidden["threshold"]) not in text


def test_a_line_that_was_cut_off_costs_a_round(tmp_path):
    path = tmp_path / "study.jsonl"
    h = create(path)
    h.ask(off)
    h.ask(off)
    h.close()
    text = path.read_text()
    path.write_text(text[:-20])
    with pytest.raises(qw.StorageError, match="cut, edited or replaced"):
        resume(path)  # it was whole once, so no crash did this
    hidden = json.loads(secret_path(path).read_text())
    sealed = line_hash(text.split("\n")[1])
    secret_path(path).write_text(json.dumps({**hidden, "lines": 2, "last": sealed}))
    again = resume(path)
    assert again.remaining == 2  # one answer is known, the cut one is charged
    assert again.transcript.entries[-1].value is None
    assert read_transcript(path.read_text()).remaining == 2


def test_no_change_to_the_transcript_alone_regains_a_round(tmp_path):
    path = tmp_path / "study.jsonl"
    h = create(path, budget=3)
    states = [path.read_text()]
    for _ in range(3):
        h.ask(off)
        states.append(path.read_text())
    h.close()
    bigger = states[0].replace('"budget": 3', '"budget": 30')
    assert bigger != states[0]
    for text in (*states[:-1], bigger, states[-1][:-5]):
        path.write_text(text)
        with pytest.raises(qw.StorageError, match="cut, edited or replaced"):
            resume(path)
    path.write_text(states[-1])
    assert resume(path).remaining == 0


def test_a_secret_older_than_two_batches_is_refused_and_one_batch_goes_on(tmp_path):
    path, secrets = tmp_path / "h.jsonl", []
    made = create(path)
    for _ in range(2):
        secrets.append(secret_path(path).read_text())
        made.ask_many([same, same])
    checkpoint = made.transcript.checkpoint
    made.close()
    secret_path(path).write_text(secrets[0])
    with pytest.raises(qw.StorageError, match="older copy"):
        resume(path)
    secret_path(path).write_text(secrets[1])
    again = resume(path)
    assert (again.asked, again.transcript.checkpoint) == (4, checkpoint)
    again.close()


def test_a_changed_header_is_refused_before_the_first_question(tmp_path):
    path = tmp_path / "study.jsonl"
    create(path, budget=3).close()
    path.write_text(path.read_text().replace('"budget": 3', '"budget": 30'))
    with pytest.raises(qw.StorageError, match="cut, edited or replaced"):
        resume(path)


@pytest.mark.parametrize("moment", ["write", "part", "fsync", "secret"])
@pytest.mark.parametrize("statistic", [off, same])
def test_a_failed_write_closes_the_holdout_and_leaves_files_that_go_on(
    tmp_path, monkeypatch, moment, statistic
):
    path = tmp_path / "study.jsonl"
    h = create(path)
    h.ask(same)
    real = h._log._handle

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    class Full:
        """The file on a disk that is full, at once or after ten bytes."""

        written = 0

        def write(self, data):
            if moment == "write" or self.written:
                fail()
            self.written = real.write(data[:10])
            return self.written

        def fileno(self):
            return real.fileno()

        def close(self):
            real.close()

    with monkeypatch.context() as patched:
        if moment in ("write", "part"):
            patched.setattr(h._log, "_handle", Full())
        else:
            patched.setattr(os, "fsync" if moment == "fsync" else "replace", fail)
        with pytest.raises(qw.StorageError, match="No space left"):
            h.ask(statistic)
        assert h.asked == 1  # no answer that was withheld shows in the transcript
        with pytest.raises(qw.InvalidInputError, match="closed"):
            h.ask(same)
    again = resume(path)
    left = again.remaining
    assert left == {"part": 3}.get(moment, 3 if statistic is off and moment != "write" else 4)
    again.ask(off)
    again.close()
    assert resume(path).remaining == left - 1


@pytest.mark.parametrize("label", [object(), None, 5, "\ud800", b"x"])
def test_labels_that_cannot_be_written_cost_nothing(tmp_path, label):
    path = tmp_path / "study.jsonl"
    h = create(path)
    for ask in (h.ask, h.ask_many):
        with pytest.raises(qw.InvalidInputError, match="label"):
            ask(off, label=label)
    assert (h.asked, h.remaining) == (0, 4)
    h.ask(off)
    h.close()
    assert resume(path).asked == 1


def test_a_closed_holdout_takes_no_question(tmp_path):
    path = tmp_path / "study.jsonl"
    h = create(path)
    h.close()
    for ask in (h.ask, h.ask_many):
        with pytest.raises(qw.InvalidInputError, match="closed"):
            ask(off)
    assert (h.asked, h.remaining) == (0, 4)
    assert resume(path).remaining == 4


def test_a_killed_batch_loses_the_rounds_it_had_begun(tmp_path, monkeypatch):
    path = tmp_path / "study.jsonl"
    h = create(path)

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(h._log, "append", die)
    with pytest.raises(KeyboardInterrupt):
        h.ask_many(lambda rows: np.column_stack([off(rows)] * 3))
    assert h.asked == 0
    assert resume(path).remaining == 2  # the third round had begun, and goes on


def test_a_lost_threshold_costs_a_round_if_it_was_used(tmp_path):
    path = tmp_path / "study.jsonl"
    h = create(path)
    before = secret_path(path).read_text()
    h.ask(same)
    h.close()
    secret_path(path).write_text(before)
    assert resume(path).remaining == 3


def test_a_killed_process_never_regains_budget(tmp_path):
    """Kill at random moments; every answer that was shown is in the transcript afterwards."""
    path = tmp_path / "study.jsonl"
    create(path, budget=200).close()
    code = f"""
import numpy as np, sys
from quiltwork.holdout import ReusableHoldout
train = np.random.default_rng(1).random((300, 2))
held = np.random.default_rng(2).random((300, 2))
h = ReusableHoldout.resume({str(path)!r}, train, held)
keys = train[:, 0]
while True:
    found = h.ask(lambda data: np.where(np.isin(data[:, 0], keys), 1.0, 0.1))
    print(found.remaining, flush=True)
"""
    shown = 200
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(5):
            line = child.stdout.readline()
            assert int(line) < shown
            shown = int(line)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        rest = [int(text) for text in child.stdout.read().split() if text]
        shown = min([shown, *rest])
        child.stdout.close()
        left = load_transcript_after_crash(path).remaining
        assert left <= shown


def load_transcript_after_crash(path: Path):
    h = resume(path)
    h.close()
    return h.transcript


@pytest.mark.parametrize("path", [5, b"study", object(), "a\0b", "", None])
def test_paths_that_are_none_are_refused(path):
    for use in (create, resume):
        if path is not None or use is resume:
            with pytest.raises(qw.InvalidInputError, match="path must be"):
                use(path)


def test_places_that_hold_no_transcript_are_refused(tmp_path):
    with pytest.raises(qw.StorageError, match="could not be written"):
        create(tmp_path / "missing" / "study.jsonl")
    with pytest.raises(qw.InvalidInputError, match="cannot be opened"):
        resume(tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for place in (tmp_path / "loop" / "study.jsonl", tmp_path / ("x" * 300), tmp_path / "\ud800"):
        with pytest.raises(qw.StorageError, match="could not be written"):
            create(place)
        with pytest.raises(qw.InvalidInputError, match="cannot be opened"):
            resume(place)
    with pytest.raises(qw.StorageError, match="could not be written: File name too long"):
        create(tmp_path / ("x" * 250))  # the name of its secret would be longer
    assert not (tmp_path / ("x" * 250)).exists()
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\n\x80")
    with pytest.raises(qw.StorageError, match="not text"):
        resume(tmp_path / "binary")


def test_a_secret_without_its_transcript_is_not_written_over(tmp_path):
    path = tmp_path / "study.jsonl"
    create(path).close()
    path.rename(tmp_path / "elsewhere.jsonl")
    with pytest.raises(qw.StorageError, match="the secret of another transcript"):
        create(path)
    (tmp_path / "elsewhere.jsonl").rename(path)
    assert resume(path).remaining == 4


@pytest.mark.parametrize(
    "change",
    [
        {"key": "zz"},
        {"key": 5},
        {"lines": "1"},
        {"other": 1},
        {"round": "1"},
        {"threshold": "1"},
        {"debit": 5},
        {"entry": -1},
    ],
)
def test_a_damaged_secret_is_refused(tmp_path, change):
    path = tmp_path / "study.jsonl"
    create(path).close()
    hidden = json.loads(secret_path(path).read_text())
    secret_path(path).write_text(json.dumps({**hidden, **change}))
    with pytest.raises(qw.StorageError, match="missing or damaged"):
        resume(path)
