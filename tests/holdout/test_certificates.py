"""Certificates: what they state, and that no field can be changed."""

from __future__ import annotations

import json
import stat

import pytest

import quiltwork as qw
from quiltwork.holdout import folders
from quiltwork.holdout.certificates import certify, verify_certificate
from quiltwork.holdout.leaderboard import end_leaderboard as end
from quiltwork.holdout.leaderboard import submit_predictions as submit
from tests.holdout.test_leaderboard import make, said, tables  # noqa: F401  (a fixture)


@pytest.mark.parametrize("mode", ["ladder", "one bit", "counting"])
def test_a_score_is_certified_and_checked_with_its_transcript(mode, tmp_path):
    make(mode)
    with pytest.raises(qw.InvalidInputError, match="No score was told yet"):
        certify("race", "key.pem")
    submit("race", "ada", said(0.8, mode))
    if mode == "one bit":
        end("race")
    made = certify("race", "key.pem")
    assert stat.S_IMODE((tmp_path / "key.pem").stat().st_mode) == 0o600
    assert (made.metric, made.team, made.asked, made.mode) == ("accuracy", "ada", 1, mode)
    assert made.low < 0.8 < made.high
    board = folders.board_path("race")
    path = board if board.exists() else folders.transcript_path("race")
    text = made.to_json()
    assert verify_certificate(text, made.public_key, path) == made
    assert certify("race", "key.pem").public_key == made.public_key
    with pytest.raises(qw.StorageError, match="another key"):
        verify_certificate(text, "00" * 32)
    (tmp_path / "other.jsonl").write_text(path.read_text().partition("\n")[0] + "\n")
    with pytest.raises(qw.StorageError, match="digest that is certified"):
        verify_certificate(text, None, "other.jsonl")
    last = path.read_text().splitlines()[-1]
    (tmp_path / "other.jsonl").write_text(f"{{}}\n{last}\n")
    with pytest.raises(qw.StorageError, match="does not carry the hash"):
        verify_certificate(text, None, "other.jsonl")


def test_no_field_can_be_changed_added_or_left_out():
    make()
    submit("race", "ada", said(0.8))
    document = json.loads(certify("race", "key.pem").to_json())
    for name in document.keys() - {"schema", "version"}:
        value = document[name]
        other = value + 1 if not isinstance(value, str) else value[:-1] + "0a"[value[-1:] == "0"]
        with pytest.raises((qw.StorageError, qw.InvalidInputError)):
            verify_certificate(json.dumps({**document, name: other}))
        with pytest.raises(qw.InvalidInputError):
            verify_certificate(json.dumps({k: v for k, v in document.items() if k != name}))
    with pytest.raises(qw.InvalidInputError, match="nothing signs"):
        verify_certificate(json.dumps({**document, "note": "best of all"}))


def test_a_file_that_is_no_key_is_refused_and_kept(tmp_path):
    make()
    submit("race", "ada", said(0.8))
    (tmp_path / "key.pem").write_text("mine")
    with pytest.raises(qw.InvalidInputError, match="no Ed25519 key"):
        certify("race", "key.pem")
    assert (tmp_path / "key.pem").read_text() == "mine"
