"""Certificates: what they state, and that no field can be changed."""

from __future__ import annotations

import json
import stat
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction

import pytest

import quiltwork as qw
from quiltwork.holdout import folders
from quiltwork.holdout.board_certificates import certify, verify_certificate
from quiltwork.holdout.metrics import Scoring
from quiltwork.holdout.transcript import BoardSetup
from tests.holdout.test_leaderboard import (  # noqa: F401  (a fixture)
    COLUMNS,
    MODES,
    PLAIN,
    end,
    leaderboard,
    make,
    said,
    submit,
    tables,
)


@MODES
def test_a_board_is_certified_and_checked_with_its_log(mode, tmp_path):
    make(mode=mode)
    with pytest.raises(qw.InvalidInputError, match="There are no submissions yet"):
        certify("race", "key.pem")
    submit("race", "ada", said(0.8))
    if mode == "one bit":
        end("race")
    made = certify("race", "key.pem")
    assert stat.S_IMODE((tmp_path / "key.pem").stat().st_mode) == 0o600
    first = leaderboard("race").places[0]
    assert (
        f"accuracy of ada: {first.value:.6g}, true value between {first.low:.6g}" in made.statement
    )
    assert made.promise == leaderboard("race").promise
    assert (made.board, made.date) == ("race", datetime.now(UTC).strftime("%Y-%m-%d"))
    path = folders.board_path("race")
    text = made.to_json()
    assert len(text) < 1200
    assert verify_certificate(text, made.public_key, path) == made
    assert certify("race", "key.pem").public_key == made.public_key
    with pytest.raises(qw.StorageError, match="another key"):
        verify_certificate(text, "00" * 32)
    (tmp_path / "other.jsonl").write_text(path.read_text().partition("\n")[0] + "\n")
    with pytest.raises(qw.StorageError, match="with the certified digest"):
        verify_certificate(text, None, "other.jsonl")
    last = path.read_text().splitlines()[-1]
    (tmp_path / "other.jsonl").write_text(f"{{}}\n{last}\n")
    with pytest.raises(qw.StorageError, match="does not carry the hash"):
        verify_certificate(text, None, "other.jsonl")


def test_the_end_of_a_competition_is_certified():
    make(final=0.5)
    submit("race", "ada", said(0.9))
    submit("race", "bob", said(0.5))
    end("race")
    made = certify("race", "key.pem")
    assert "ada is significantly ahead of all others" in made.statement
    assert "2. bob" in made.statement


LIMITED = (Fraction(0), Fraction(1, 2))


@pytest.mark.parametrize(
    ("scoring", "words"),
    [
        (
            Scoring("f1", None, "1", None, Fraction(1, 4), ("0", "1")),
            ["class '1'", "at least 0.25"],
        ),
        (Scoring("neg_mean_absolute_error", LIMITED), ["times -1", "clipped to between 0 and 0.5"]),
        (Scoring("r2", LIMITED, "1", Fraction(1, 4)), ["variance of 0.25", "clipped at 0"]),
        (Scoring("neg_log_loss"), ["between 0.001 and 0.999"]),
        (Scoring("roc_auc", None, "1", None, Fraction(1, 4)), ["disjoint pairs"]),
        (PLAIN, []),
    ],
)
def test_what_is_stated_says_how_the_metric_differs_from_textbooks(scoring, words):
    make(scoring)
    submit("race", "ada", said(0.8))
    told = verify_certificate(certify("race", "key.pem").to_json()).explain()
    assert scoring.metric in told
    assert all(one in told for one in words)
    assert (f"{scoring.metric} is " in told) == bool(words)


def test_of_a_holdout_that_is_asked_questions_promise_and_digest_are_certified():
    study = folders.read_train_and_holdout("train.csv", "labels.csv", COLUMNS)
    rows = (study.train, study.holdout)
    folders.make_folder("study")
    path = folders.transcript_path("study")
    folders.save("study", folders.HoldoutPaths("train.csv", "labels.csv", None))
    asked = qw.holdout.ReusableHoldout(
        *rows, threshold=0.5, noise=0.01, budget=2, path=path, about=BoardSetup(columns=COLUMNS)
    )
    with closing(asked) as opened:
        opened.ask(lambda row: row[:, 1] == "1", label="f1")
        made = certify("study", "key.pem")
        assert made.statement == "1 question answered."
        assert f"{opened.guarantee().tolerance:.4g}" in made.promise
    assert verify_certificate(made.to_json(), None, path) == made


def test_keys_of_openssh_are_read_too(tmp_path):
    from cryptography.hazmat.primitives import serialization as pem
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    kind = pem.Encoding.PEM, pem.PrivateFormat.OpenSSH, pem.NoEncryption()
    (tmp_path / "id_ed25519").write_bytes(key.private_bytes(*kind))
    public = key.public_key().public_bytes(pem.Encoding.OpenSSH, pem.PublicFormat.OpenSSH).decode()
    (tmp_path / "id_ed25519.pub").write_text(f"{public} ada@home\n")
    make()
    submit("race", "ada", said(0.8))
    made = certify("race", "id_ed25519")
    for form in ("id_ed25519", "id_ed25519.pub", public):
        assert verify_certificate(made.to_json(), form) == made


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
        with pytest.raises(qw.InvalidInputError, match="Nothing was verified"):
            verify_certificate(text, wrong)


def test_no_field_can_be_changed_added_or_left_out():
    make()
    submit("race", "ada", said(0.8))
    document = json.loads(certify("race", "key.pem").to_json())
    for name in document.keys() - {"schema", "version"}:
        value = document[name]
        other = value[:-1] + "0a"[value[-1:] == "0"]
        for wrong in (other, 5, None):
            with pytest.raises((qw.StorageError, qw.InvalidInputError)):
                verify_certificate(json.dumps({**document, name: wrong}))
        with pytest.raises(qw.InvalidInputError):
            verify_certificate(json.dumps({k: v for k, v in document.items() if k != name}))
    with pytest.raises(qw.InvalidInputError, match="not signed"):
        verify_certificate(json.dumps({**document, "note": "best of all"}))


def test_a_certificate_is_written_in_one_way():
    make()
    submit("race", "ada", said(0.8))
    text = certify("race", "key.pem").to_json()
    signature = json.loads(text)["signature"]
    for other, problem in (
        ('{"board": "best", ' + text[1:], "names 'board' twice"),
        (text.replace('"version": 1', '"version": 1.0'), "version 1.0 is unknown"),
        (text.replace('"version": 1', '"version": true'), "version True is unknown"),
        (text.replace(signature, signature.upper()), "lower-case"),
        (text.replace(signature, f"{signature[:2]} {signature[2:]}"), "128 lower-case hexadecimal"),
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
        with pytest.raises(qw.StorageError, match="small order"):
            verify_certificate(json.dumps(forged))


def test_a_file_that_is_no_key_is_refused_and_kept(tmp_path):
    make()
    submit("race", "ada", said(0.8))
    (tmp_path / "key.pem").write_text("mine")
    with pytest.raises(qw.InvalidInputError, match="does not hold an unencrypted Ed25519 key"):
        certify("race", "key.pem")
    assert (tmp_path / "key.pem").read_text() == "mine"
