"""Certificates: a signed statement of a score, which anybody can check offline.

A statement tells the metric, the value and where its truth is, how many questions were asked before
it, by which mode and theorem, and the digest of the transcript it was taken from. It is signed with
Ed25519 by the `cryptography` package (the extra `sign`); the signature covers every field.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from quiltwork import files
from quiltwork.errors import InvalidInputError, StorageError, UnsupportedError
from quiltwork.exact import nearest_float, shortened
from quiltwork.holdout import folders
from quiltwork.holdout.standings import read_leaderboard
from quiltwork.holdout.storage import check_text, line_hash, read_chained, split_lines
from quiltwork.results import ResultBase

SCHEMA = "holdout-certificate"
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
        metric: the name of the metric, or the label of the question.
        value: what was shown.
        low: where the truth begins, with the stated confidence.
        high: where it ends.
        confidence: of that.
        rows: of the holdout, or pairs of rows.
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
        return (
            f"{self.metric}{whose}: {self.value:.6g}, with probability {self.confidence:g} between "
            f"{self.low:.6g} and {self.high:.6g} in truth ({self.mode} on {self.rows:,} rows after "
            f"{self.asked:,} questions; {self.theorem}).\n"
            f"Transcript {self.transcript}\nSigned by {self.public_key}"
        )


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
    text: str | bytes, public_key: str | None = None, transcript: str | Path | None = None
) -> Certificate:
    """Check a certificate: its signature, whose it is, and the transcript that it speaks of.

    Args:
        text: what `Certificate.to_json` wrote.
        public_key: of whom it must be; without it, it is only known that the text is as signed.
        transcript: a file that must have the line that it names; each line must carry the hash of
            the one before, so that those up to it are the ones that were signed.

    Raises:
        InvalidInputError: if it is no certificate.
        StorageError: if it was changed, is signed by another, or belongs to another transcript.
    """
    document = files.load(text, SCHEMA, (1,))
    found = _read(document)
    if public_key is not None:
        check_text(public_key, "public_key")
    unsigned = {name: document[name] for name in _names() if name != "signature"}
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise _missing() from None
    try:
        signer = Ed25519PublicKey.from_public_bytes(bytes.fromhex(found.public_key))
        signer.verify(bytes.fromhex(found.signature), _signed(unsigned))
    except (InvalidSignature, ValueError):
        raise StorageError(
            "The signature does not fit: the certificate was changed after it was signed."
        ) from None
    if public_key is not None and public_key.strip().lower() != found.public_key:
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
    kinds = {"str": str, "int": int, "float": (int, float)}
    for field in fields(Certificate):
        value, kind = document.get(field.name), kinds[str(field.type)]
        if not isinstance(value, kind) or isinstance(value, bool):  # type: ignore[arg-type]
            raise InvalidInputError(
                f"{field.name} of the certificate is {shortened(value)}, and must be {field.type}."
            )
    extra = set(document) - set(_names()) - {"schema", "version"}
    if extra:
        raise InvalidInputError("The certificate has fields that none has; nothing signs them.")
    return Certificate(**{name: document[name] for name in _names()})


def _signed(unsigned: Mapping[str, Any]) -> bytes:
    return json.dumps({**unsigned, "schema": SCHEMA}, sort_keys=True).encode()


def _statement(folder: str) -> dict[str, Any]:
    board = folders.board_path(folder)
    path = board if board.exists() else folders.transcript_path(folder)
    folders.load(folder)
    digest = line_hash(split_lines(folders.whole_lines(path))[-1])
    if path == board or folders.read_transcript_of(folder).scoring is not None:
        found = read_leaderboard(folder)
        first = next((one for one in found.places if one.value is not None), None)
        if first is None:
            raise InvalidInputError(
                "No score was told yet; submit something, and end a board of one bit."
            )
        return {
            "metric": found.metric,
            "value": first.value,
            "low": first.low,
            "high": first.high,
            "confidence": found.confidence,
            "rows": found.rows,
            "asked": found.submitted,
            "mode": found.mode,
            "theorem": _THEOREMS[found.mode],
            "team": first.team,
            "transcript": digest,
        }
    return {**_answer(folder), "team": "", "transcript": digest}


def _answer(folder: str) -> dict[str, Any]:
    """State the last answer of a holdout that is asked questions of many kinds."""
    found = folders.read_transcript_of(folder)
    answers = [entry for entry in found.entries if entry.value is not None]
    if not answers or answers[-1].value is None:
        raise InvalidInputError("Nothing was answered yet.")
    settings, value = found.settings, nearest_float(answers[-1].value)
    promise = found.promise()
    mode = "max-information" if settings.values is None else "counting"
    return {
        "metric": f"mean over rows, asked as {answers[-1].question!r}",
        "value": value,
        "low": max(0.0, value - promise.tolerance),
        "high": min(1.0, value + promise.tolerance),
        "confidence": promise.confidence,
        "rows": settings.rows,
        "asked": len(found.entries),
        "mode": mode,
        "theorem": _THEOREMS[mode],
    }


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


def _missing() -> UnsupportedError:
    return UnsupportedError(
        "Certificates need the cryptography package: pip install 'quiltwork[sign]'."
    )
