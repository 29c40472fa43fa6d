"""Certificates: what they state, and that no field can be changed."""

from __future__ import annotations

import json
import stat
from contextlib import closing
from fractions import Fraction

import pytest

import quiltwork as qw
from quiltwork.holdout import folders
from quiltwork.holdout.certificates import certify, verify_certificate
from quiltwork.holdout.leaderboard import end_leaderboard as end
from quiltwork.holdout.leaderboard import submit_predictions as submit
from quiltwork.holdout.metrics import Scoring, read_scoring
from tests.holdout.test_leaderboard import COLUMNS, MODES, PLAIN, ROWS, make, said, tables  # noqa: F401  (a fixture)


@MODES
def test_a_score_is_certified_and_checked_with_its_transcript(mode, tmp_path):
    make(mode=mode)
    with pytest.raises(qw.InvalidInputError, match="No score was told yet"):
        certify("race", "key.pem")
    submit("race", "ada", said(0.8))
    if mode == "one bit":
        end("race")
    made = certify("race", "key.pem")
    assert stat.S_IMODE((tmp_path / "key.pem").stat().st_mode) == 0o600
    assert (made.metric, made.team, made.asked, made.mode) == ("accuracy", "ada", 1, mode)
    assert made.low < 0.8 < made.high
    path = folders.board_path("race")
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


LIMITED = (Fraction(0), Fraction(1, 2))


@pytest.mark.parametrize(
    ("scoring", "words"),
    [
        (
            Scoring("f1", None, "1", None, Fraction(1, 4), ("0", "1")),
            ["class '1'", "at least 0.25"],
        ),
        (Scoring("neg_mean_absolute_error", LIMITED), ["times -1", "clipped to between 0 and 0.5"]),
        (Scoring("r2", LIMITED, "1", Fraction(1, 4)), ["variance of 0.25", "0 where it is below"]),
        (Scoring("neg_log_loss"), ["between 0.001 and 0.999"]),
        (Scoring("roc_auc", None, "1", None, Fraction(1, 4)), ["disjoint pairs"]),
        (PLAIN, []),
    ],
)
def test_what_is_stated_is_told_exactly_with_the_rows_of_the_holdout(scoring, words):
    make(scoring)
    submit("race", "ada", said(0.8))
    made = certify("race", "key.pem")
    assert made.rows == ROWS
    assert read_scoring(made.scoring) == scoring
    assert made.metric == scoring.metric
    told = verify_certificate(made.to_json()).explain()
    assert all(one in told for one in words)
    assert ("What is stated" in told) == bool(words)


def test_a_mean_is_not_certified_under_the_name_of_a_metric(tmp_path):
    study = folders.read_study("train.csv", "labels.csv", COLUMNS)
    rows = (study.train, study.holdout)
    folders.make_folder("study")
    path = folders.transcript_path("study")
    folders.save("study", folders.Places("train.csv", "labels.csv", None))
    asked = qw.holdout.ReusableHoldout(
        *rows, threshold=0.5, noise=0.01, budget=2, path=path, columns=COLUMNS
    )
    with closing(asked) as opened:
        for label in ("f1", "root mean squared error", "accuracy where home=3", "mine"):
            opened.ask_many([lambda row: row[:, 1] == "1"] * 2, label=label)
            with pytest.raises(qw.InvalidInputError, match="worked out from"):
                certify("study", "key.pem")
        for label in ("accuracy", "accuracy", "share of home=3", "yours"):
            opened.ask(lambda row: row[:, 1] == "1", label=label)
            made = certify("study", "key.pem")
            assert (made.scoring, made.rows, made.asked) == (None, ROWS, opened.asked)
            assert made.metric == f"mean over rows, asked as {label!r}"


def test_a_public_key_is_read_as_it_comes_and_a_wrong_form_is_never_another_key(tmp_path):
    from cryptography.hazmat.primitives import serialization as pem
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    def public(key):
        told = key.public_key()
        kind = pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo
        return told.public_bytes(*kind).decode()

    make()
    submit("race", "ada", said(0.8))
    made = certify("race", "key.pem")
    text = made.to_json()
    own = pem.load_pem_private_key((tmp_path / "key.pem").read_bytes(), None)
    other = Ed25519PrivateKey.generate()
    (tmp_path / "pub.pem").write_text(public(own))
    (tmp_path / "other.pem").write_text(public(other))
    (tmp_path / "hex.txt").write_text(made.public_key + "\n")
    forms = (made.public_key.upper(), public(own), "pub.pem", tmp_path / "pub.pem", "key.pem")
    for right in (*forms, "hex.txt"):
        assert verify_certificate(text, right) == made
    for wrong in (public(other), "other.pem", "00" * 32):
        with pytest.raises(qw.StorageError, match="another key"):
            verify_certificate(text, wrong)
    (tmp_path / "no.pem").write_text(public(own).replace("MCow", "MCox"))
    for wrong in ("absent.pem", "no.pem", made.public_key[:-1], "", "race/board.jsonl", "a\0b"):
        with pytest.raises(qw.InvalidInputError, match="Nothing was compared"):
            verify_certificate(text, wrong)


def test_no_field_can_be_changed_added_or_left_out():
    make()
    submit("race", "ada", said(0.8))
    document = json.loads(certify("race", "key.pem").to_json())
    for name in document.keys() - {"schema", "version"}:
        value = document[name]
        if name == "scoring":
            other = {**value, "floor": "1/3"}
        elif isinstance(value, str):
            other = value[:-1] + "0a"[value[-1:] == "0"]
        else:
            other = value + 1
        with pytest.raises((qw.StorageError, qw.InvalidInputError)):
            verify_certificate(json.dumps({**document, name: other}))
        with pytest.raises(qw.InvalidInputError):
            verify_certificate(json.dumps({k: v for k, v in document.items() if k != name}))
    with pytest.raises(qw.InvalidInputError, match="nothing signs"):
        verify_certificate(json.dumps({**document, "note": "best of all"}))


def test_a_certificate_is_written_in_one_way():
    make()
    submit("race", "ada", said(0.8))
    text = certify("race", "key.pem").to_json()
    signature = json.loads(text)["signature"]
    for other, problem in (
        ('{"value": 0.99, ' + text[1:], "names 'value' twice"),
        (text.replace('"version": 1', '"version": 1.0'), "version 1.0 is unknown"),
        (text.replace('"version": 1', '"version": true'), "version True is unknown"),
        (text.replace(signature, signature.upper()), "small letters"),
        (text.replace(signature, f"{signature[:2]} {signature[2:]}"), "128 hexadecimal"),
    ):
        assert other != text
        with pytest.raises(qw.InvalidInputError, match=problem):
            verify_certificate(other)


def added(one, other, prime=2**255 - 19):
    """Add two points of Ed25519."""
    (a, b), (c, d) = one, other
    over = -121665 * pow(121666, -1, prime) * a * b * c * d
    return (
        (a * d + b * c) * pow(1 + over, -1, prime) % prime,
        (b * d + a * c) * pow(1 - over, -1, prime) % prime,
    )


def small_points(prime=2**255 - 19):
    """Every point whose eightfold is neutral, from one of order 8 that a random one leads to."""
    order, root = 2**252 + 27742317777372353535851937790883648493, pow(2, (prime - 1) // 4, prime)
    for y in range(2, 100):
        square = (y * y - 1) * pow(-121665 * pow(121666, -1, prime) * y * y + 1, -1, prime) % prime
        x = pow(square, (prime + 3) // 8, prime)
        x = x if x * x % prime == square else x * root % prime
        if x * x % prime != square:
            continue
        point, total = (x, y), (0, 1)
        for bit in bin(order)[2:]:
            total = added(total, total)
            total = added(total, point) if bit == "1" else total
        found = [(0, 1)]
        while len(set(found)) == len(found):
            found.append(added(found[-1], total))
        if len(set(found)) == 8:
            return set(found)
    raise AssertionError


def test_keys_that_fit_any_text_are_refused():
    make()
    submit("race", "ada", said(0.8))
    document = json.loads(certify("race", "key.pem").to_json())
    keys = set()
    for x, y in small_points():
        for height in {y, *([y + 2**255 - 19] if y < 19 else [])}:
            keys |= {(height + 2**255 * sign).to_bytes(32, "little") for sign in (x % 2, 1 - x % 2)}
    assert len(keys) == 14
    for key in keys:
        forged = {**document, "public_key": key.hex(), "signature": (b"\1" + bytes(63)).hex()}
        with pytest.raises(qw.StorageError, match="fit any text"):
            verify_certificate(json.dumps(forged))


def test_a_file_that_is_no_key_is_refused_and_kept(tmp_path):
    make()
    submit("race", "ada", said(0.8))
    (tmp_path / "key.pem").write_text("mine")
    with pytest.raises(qw.InvalidInputError, match="no Ed25519 key"):
        certify("race", "key.pem")
    assert (tmp_path / "key.pem").read_text() == "mine"
