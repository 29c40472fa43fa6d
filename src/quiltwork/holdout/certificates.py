"""Certificates: a signed statement of a score, which anybody can check offline.

A statement tells the metric with everything that it is scored by, the value and where its truth is,
how many questions were asked before it, by which mode and theorem, and the digest of the transcript
it was taken from. It is signed with
Ed25519 by the `cryptography` package (the extra `sign`); the signature covers every field.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from quiltwork import files
from quiltwork.errors import InvalidInputError, StorageError, UnsupportedError
from quiltwork.exact import nearest_float, shortened
from quiltwork.holdout import folders
from quiltwork.holdout.leaderboard import first_line, read_leaderboard
from quiltwork.holdout.metrics import CLIP, NAMES, Scoring, read_scoring
from quiltwork.holdout.storage import check_text, line_hash, read_chained, split_lines
from quiltwork.results import ResultBase

SCHEMA = "holdout-certificate"
_PRIME = 2**255 - 19
_EIGHTH = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
"""The height of the points of order 8 on the curve, with the sign for which it is less."""
_THEOREMS = {
    "ladder": "docs/theory/ladder.md",
    "one bit": "docs/theory/counting.md",
    "counting": "docs/theory/counting.md",
    "max-information": "docs/theory/reusable-holdout.md",
}


@dataclass(frozen=True)
class Certificate(ResultBase):
    """A signed statement of a score.

    Attributes:
        metric: the name of the metric, or what mean was asked for.
        scoring: the metric with its limits, positive class, variance and floor; None for a mean.
        value: what was shown.
        low: where the truth of what is stated begins, with the stated confidence.
        high: where it ends.
        confidence: of that.
        rows: of the holdout, without training rows.
        asked: questions or submissions before this one was last told.
        mode: "ladder", "one bit", "counting" or "max-information".
        theorem: where the promise is proven.
        team: whose submission; empty for a question to a holdout.
        transcript: the SHA-256 of the transcript's last line.
        public_key: of who signed, 64 hexadecimal digits.
        signature: over all of this, 128 hexadecimal digits.
    """

    schema = ("holdout-certificate", 1)

    metric: str
    scoring: dict[str, Any] | None
    value: float
    low: float
    high: float
    confidence: float
    rows: int
    asked: int
    mode: str
    theorem: str
    team: str
    transcript: str
    public_key: str
    signature: str

    def explain(self) -> str:
        """Say what is certified, by whom."""
        whose = f" of {self.team}" if self.team else ""
        stated = "" if self.scoring is None else _stated(read_scoring(self.scoring))
        return (
            f"{self.metric}{whose}: {self.value:.6g}, with probability {self.confidence:g} between "
            f"{self.low:.6g} and {self.high:.6g} in truth ({self.mode} on {self.rows:,} rows after "
            f"{self.asked:,} questions; {self.theorem}).\n{stated}"
            f"Transcript {self.transcript}\nSigned by {self.public_key}"
        )


def _stated(scoring: Scoring) -> str:
    """Say in which ways the metric that is stated is not the one of textbooks."""
    metric, told = scoring.read(), []
    if metric.name.startswith("neg_"):
        told.append("an error times -1, so that more is better")
    if scoring.limits is not None and metric.predicts == "predict" and not metric.labels:
        low, high = map(float, scoring.limits)
        told.append(f"targets and predictions clipped to between {low:g} and {high:g}")
    if metric.name == "r2":
        told.append(f"against a variance of {float(scoring.variance):g}, and 0 where it is below 0")
    if metric.name == "neg_log_loss":
        told.append(f"probabilities clipped to between {CLIP:g} and {1 - CLIP:g}")
    if metric.name == "neg_brier_score":
        told.append("probabilities clipped to between 0 and 1")
    if metric.labels and len(metric.signs) > 1:
        told.append(f"with the positive class {scoring.positive!r}")
    if scoring.floor is not None and len(metric.signs) > 1:
        told.append(f"what is divided by counted as at least {float(scoring.floor):g}")
    if metric.pairs:
        told.append("over disjoint pairs of rows")
    return f"What is stated is {metric.name}, {'; '.join(told)}.\n" if told else ""


def certify(folder: str, key: str | Path) -> Certificate:
    """Sign the best score of a leaderboard, or the last answer of a holdout.

    `key` is a file with an Ed25519 key in PEM; if there is none it is made, for its owner only.

    Raises:
        InvalidInputError: if nothing was scored yet, or the file holds no such key.
        UnsupportedError: without the `cryptography` package.
    """
    told = _statement(folder)
    private = _private_key(files.named(key))
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
    unsigned = {**told, "public_key": public}
    return Certificate(**unsigned, signature=private.sign(_signed(unsigned)).hex())


def verify_certificate(
    text: str | bytes, public_key: str | Path | None = None, transcript: str | Path | None = None
) -> Certificate:
    """Check a certificate: its signature, whose it is, and the transcript that it speaks of.

    Args:
        text: what `Certificate.to_json` wrote.
        public_key: of whom it must be: 64 hexadecimal digits, a key in PEM (public or private), or
            the name of a file with one; without it, it is only known that the text is as signed.
        transcript: a file that must have the line that it names; each line must carry the hash of
            the one before, so that those up to it are the ones that were signed.

    Raises:
        InvalidInputError: if it is no certificate.
        StorageError: if it was changed, is signed by another, or belongs to another transcript.
    """
    document = files.load(text, SCHEMA, (1,))
    found = _read(document)
    signed_by = None if public_key is None else _public_key(public_key)
    unsigned = {name: document[name] for name in _names() if name != "signature"}
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise _missing() from None
    if _is_small(found.public_key):
        raise StorageError("The key is one of the few that fit any text, and signs nothing.")
    try:
        signer = Ed25519PublicKey.from_public_bytes(bytes.fromhex(found.public_key))
        signer.verify(bytes.fromhex(found.signature), _signed(unsigned))
    except (InvalidSignature, ValueError):
        raise StorageError(
            "The signature does not fit: the certificate was changed after it was signed."
        ) from None
    if signed_by is not None and signed_by != found.public_key:
        raise StorageError(f"The certificate is signed by {found.public_key}, another key.")
    if transcript is not None:
        lines = split_lines(files.text_of(files.named(transcript)))
        read_chained(lines)
        if found.transcript not in map(line_hash, lines):
            raise StorageError("No line of the transcript has the digest that is certified.")
    return found


def _names() -> list[str]:
    return [field.name for field in fields(Certificate)]


def _read(document: Mapping[str, Any]) -> Certificate:
    wanted = {*_names(), "schema", "version"}
    if wanted != set(document):
        raise InvalidInputError(
            "The certificate has fields that none has, which nothing signs, or lacks some."
        )
    kinds = {"str": str, "int": int, "float": (int, float), "dict[str, Any] | None": object}
    for field in fields(Certificate):
        value, kind = document[field.name], kinds[str(field.type)]
        if not isinstance(value, kind) or isinstance(value, bool):  # type: ignore[arg-type]
            raise InvalidInputError(
                f"{field.name} of the certificate is {shortened(value)}, and must be {field.type}."
            )
    for name, digits in (("transcript", 64), ("public_key", 64), ("signature", 128)):
        if not re.fullmatch(f"[0-9a-f]{{{digits}}}", document[name]):
            raise InvalidInputError(
                f"{name} of the certificate must be {digits} hexadecimal digits, in small letters."
            )
    if document["scoring"] is not None:
        read_scoring(document["scoring"])
    return Certificate(**{name: document[name] for name in _names()})


def _signed(unsigned: Mapping[str, Any]) -> bytes:
    return files.dump(SCHEMA, 1, unsigned).encode()


def _is_small(public_key: str) -> bool:
    """Whether a key is a point of order 8 or less, with which every text can be made to fit."""
    height = int.from_bytes(bytes.fromhex(public_key), "little") % 2**255 % _PRIME
    return min(height, _PRIME - height) in (0, 1, _EIGHTH)


def _statement(folder: str) -> dict[str, Any]:
    folders.load(folder)
    board = folders.board_path(folder)
    if board.exists():
        path, told = board, _best_score(folder)
    else:
        path, told = folders.transcript_path(folder), _answer(folder)
    digest = line_hash(split_lines(folders.sealed_lines(path))[-1])
    return {**told, "theorem": _THEOREMS[told["mode"]], "transcript": digest}


def _best_score(folder: str) -> dict[str, Any]:
    """State the best score of a leaderboard."""
    found, scoring = read_leaderboard(folder), first_line(folder).scoring
    if not found.places or found.places[0].value is None:
        raise InvalidInputError(
            "No score was told yet; submit something, and end a board of one bit."
        )
    first = found.places[0]
    return {
        "metric": found.metric,
        "scoring": None if scoring is None else scoring.body(),
        "value": first.value,
        "low": first.low,
        "high": first.high,
        "confidence": found.confidence,
        "rows": found.rows,
        "asked": found.submitted,
        "mode": found.mode,
        "team": first.team,
    }


def _answer(folder: str) -> dict[str, Any]:
    """State the last answer of a holdout that is asked questions of many kinds."""
    found = folders.read_transcript_of(folder)
    answers = [entry for entry in found.entries if entry.value is not None]
    if not answers or answers[-1].value is None:
        raise InvalidInputError("Nothing was answered yet.")
    asked, settings = answers[-1].question, found.settings
    value = nearest_float(answers[-1].value)
    if not _is_a_mean(asked, [entry.question for entry in answers[:-1]]):
        raise InvalidInputError(
            f"The last answer is a mean of those that {asked!r} was worked out from, not its value,"
            " so it cannot be certified under that name. Certify accuracy or a share, or score it "
            "by a leaderboard."
        )
    promise = found.promise()
    return {
        "metric": f"mean over rows, asked as {asked!r}",
        "scoring": None,
        "value": value,
        "low": max(0.0, value - promise.tolerance),
        "high": min(1.0, value + promise.tolerance),
        "confidence": promise.confidence,
        "rows": settings.rows,
        "asked": len(found.entries),
        "mode": "max-information" if settings.values is None else "counting",
        "team": "",
    }


def _is_a_mean(asked: str, before: Sequence[str]) -> bool:
    """Whether a question is one mean over rows, as far as its label and those before it tell."""
    if asked == "accuracy" or asked.startswith("share of "):
        return True
    named = asked.partition(" where ")[0] in {
        name.removeprefix("neg_").replace("_", " ") for name in NAMES
    }
    return not named and asked not in before[-1:]


def _private_key(path: Path) -> Any:
    try:
        from cryptography.hazmat.primitives import serialization as pem
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError:
        raise _missing() from None
    if not os.path.lexists(path):
        made = Ed25519PrivateKey.generate()
        kind = (pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
        files.write(path, made.private_bytes(*kind), files.OWNER_ONLY)
        return made
    try:
        found = pem.load_pem_private_key(files.contents(path), None)
    except (TypeError, ValueError):
        found = None
    if not isinstance(found, Ed25519PrivateKey):
        raise InvalidInputError(f"{str(path)!r} holds no Ed25519 key in PEM without a password.")
    return found


def _public_key(given: str | Path) -> str:
    """Read a public key, as 64 hexadecimal digits."""
    text = str(given)
    check_text(text, "public_key")
    if re.fullmatch("[0-9a-fA-F]{64}", text.strip()):
        return text.strip().lower()
    if "-----BEGIN" not in text:
        if "\0" in text or not os.path.isfile(text):
            raise InvalidInputError(
                f"public_key is {shortened(text)}, which is neither 64 hexadecimal digits, nor a "
                "key in PEM, nor a file with one. Nothing was compared."
            )
        text = files.text_of(files.named(text))
        if re.fullmatch("[0-9a-fA-F]{64}", text.strip()):
            return text.strip().lower()
    try:
        from cryptography.hazmat.primitives import serialization as pem
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise _missing() from None
    key: Any = None
    with suppress(TypeError, ValueError):
        if "PRIVATE KEY" in text:
            key = pem.load_pem_private_key(text.encode(), None)
            key = key.public_key() if isinstance(key, ed25519.Ed25519PrivateKey) else None
        else:
            key = pem.load_pem_public_key(text.encode())
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise InvalidInputError(
            "public_key holds no Ed25519 key in PEM without a password. Nothing was compared."
        )
    return str(key.public_bytes(pem.Encoding.Raw, pem.PublicFormat.Raw).hex())


def _missing() -> UnsupportedError:
    return UnsupportedError(
        "Certificates need the cryptography package: pip install 'quiltwork[sign]'."
    )
