"""Certificates: signed statements of a board's standings, which anybody can verify offline.

A certificate holds the board's name, the date, the standings, the guarantee, and the digest of the
log it was taken from; with the log, everything else can be replayed. It is signed with Ed25519 by
the `cryptography` package (the extra `sign`), and the signature covers every field.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quiltwork import files
from quiltwork.errors import InvalidInputError, StorageError, UnsupportedError
from quiltwork.exact import counted, shortened
from quiltwork.holdout import folders
from quiltwork.holdout.board import promise_of, status_of
from quiltwork.holdout.metrics import CLIP, Scoring
from quiltwork.holdout.sealed_log import (
    check_text,
    line_hash,
    sealed_lines,
    split_lines,
    verify_chain,
)
from quiltwork.holdout.transcript import Transcript, read_transcript
from quiltwork.results import ResultBase

SCHEMA, _VERSION = "board-certificate", 1
_PRIME = 2**255 - 19
_EIGHTH = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
"""The y coordinate of the curve points of order 8, up to sign."""


@dataclass(frozen=True)
class Certificate(ResultBase):
    """A signed statement of a board's standings.

    Attributes:
        board: its name.
        date: of the signature, in UTC.
        statement: the standings.
        promise: the board's accuracy guarantee.
        digest: the SHA-256 of the last line of its log.
        public_key: of the signer, 64 hexadecimal digits.
        signature: over all other fields, 128 hexadecimal digits.
    """

    schema = (SCHEMA, _VERSION)

    board: str
    date: str
    statement: str
    promise: str
    digest: str
    public_key: str
    signature: str

    def explain(self) -> str:
        """Return the statement and the signer."""
        return (
            f"{self.board}, {self.date}\n{self.statement}\n{self.promise}\nLog {self.digest}\n"
            f"Signed by {self.public_key}"
        )


def certify(folder: str, key: str | Path) -> Certificate:
    """Sign the standings of the leaderboard or holdout in a folder.

    `key` is a file with an Ed25519 key in PEM; if it does not exist, it is created for its owner
    only.

    Raises:
        InvalidInputError: if nothing was submitted yet, or the file holds no such key.
        UnsupportedError: without the `cryptography` package.
    """
    folders.load(folder)
    path = folders.board_path(folder)
    path = path if path.exists() else folders.transcript_path(folder)
    text = sealed_lines(path)
    transcript = read_transcript(text)
    if not transcript.entries:
        raise InvalidInputError("There are no submissions yet, so there is nothing to certify.")
    private = _private_key(files.as_path(key))
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    unsigned = {
        "board": transcript.about.name or Path(folder).resolve().name,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "statement": _statement(transcript),
        "promise": promise_of(transcript).words,
        "digest": line_hash(split_lines(text)[-1]),
        "public_key": private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex(),
    }
    return Certificate(**unsigned, signature=private.sign(_signed(unsigned)).hex())


def _statement(transcript: Transcript) -> str:
    """Return the standings in words, and how the metric differs from the textbook one."""
    events = counted(
        len(transcript.entries), "question" if transcript.rule.kind == "rounds" else "submission"
    )
    if not transcript.about.scorings:
        return f"{events} answered."
    status, scoring = status_of(transcript), transcript.about.scorings[0]
    if status.ranking is not None:
        ranked = "; ".join(
            f"{score.rank}. {score.team} {score.value:.6g} ({score.low:.4g} to {score.high:.4g}), "
            f"group {score.group}"
            for score in status.ranking.scores
        )
        standings = f"{status.ranking.explain()}\n{ranked}."
    elif status.places and status.places[0].value is not None:
        first = status.places[0]
        standings = (
            f"{status.metric} of {first.team}: {first.value:.6g}, true value between "
            f"{first.low:.6g} and {first.high:.6g}."
        )
    else:
        standings = "No score was published."
    return f"After {events} on {status.asked_rows:,} rows. {standings}{_metric_notes(scoring)}"


def _metric_notes(scoring: Scoring) -> str:
    metric, notes = scoring.read(), []
    if metric.name.startswith("neg_"):
        notes.append("an error times -1, so that larger is better")
    if scoring.limits is not None and metric.predicts == "predict" and not metric.labels:
        low, high = map(float, scoring.limits)
        notes.append(f"targets and predictions clipped to between {low:g} and {high:g}")
    if metric.name == "r2":
        notes.append(f"against a variance of {float(scoring.variance):g}, and clipped at 0")
    if metric.name == "neg_log_loss":
        notes.append(f"probabilities clipped to between {CLIP:g} and {1 - CLIP:g}")
    if metric.name == "neg_brier_score":
        notes.append("probabilities clipped to between 0 and 1")
    if metric.labels and len(metric.signs) > 1:
        notes.append(f"with the positive class {scoring.positive!r}")
    if scoring.floor is not None and len(metric.signs) > 1:
        notes.append(f"with denominators of at least {float(scoring.floor):g}")
    if metric.pairs:
        notes.append("over disjoint pairs of rows")
    return f" {metric.name} is {'; '.join(notes)}." if notes else ""


def verify_certificate(
    text: str | bytes, public_key: str | Path | None = None, log: str | Path | None = None
) -> Certificate:
    """Verify a certificate: its signature, its signer, and the log it refers to.

    Args:
        text: what `Certificate.to_json` wrote.
        public_key: the expected signer: 64 hexadecimal digits, a key in PEM or OpenSSH format
            (public or private), or the name of a file with one. Without it, only the signature is
            verified.
        log: a file that must contain the certified line; each line must carry the hash of the line
            before, so all lines up to it are the certified ones.

    Raises:
        InvalidInputError: if it is not a certificate.
        StorageError: if it was changed, is signed by another key, or belongs to another log.
    """
    document = files.load(text, SCHEMA, (_VERSION,))
    certificate = _read(document)
    expected_signer = None if public_key is None else _public_key(public_key)
    unsigned = {name: document[name] for name in _names() if name != "signature"}
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise _missing() from None
    if _has_small_order(certificate.public_key):
        raise StorageError("The public key has small order: signatures by it prove nothing.")
    try:
        signer = Ed25519PublicKey.from_public_bytes(bytes.fromhex(certificate.public_key))
        signer.verify(bytes.fromhex(certificate.signature), _signed(unsigned))
    except (InvalidSignature, ValueError):
        raise StorageError(
            "The signature is invalid: the certificate was changed after it was signed."
        ) from None
    if expected_signer is not None and expected_signer != certificate.public_key:
        raise StorageError(f"The certificate is signed by {certificate.public_key}, another key.")
    if log is not None:
        lines = split_lines(files.read_text(files.as_path(log)))
        verify_chain(lines)
        if certificate.digest not in map(line_hash, lines):
            raise StorageError("The log has no line with the certified digest.")
    return certificate


def _names() -> list[str]:
    return [field.name for field in fields(Certificate)]


def _read(document: Mapping[str, Any]) -> Certificate:
    if {*_names(), "schema", "version"} != set(document):
        raise InvalidInputError(
            "The certificate has unknown fields, which are not signed, or lacks some."
        )
    for name in _names():
        if not isinstance(document[name], str):
            raise InvalidInputError(
                f"{name} of the certificate is {shortened(document[name])}; it must be text."
            )
    for name, digits in (("digest", 64), ("public_key", 64), ("signature", 128)):
        if not re.fullmatch(f"[0-9a-f]{{{digits}}}", document[name]):
            raise InvalidInputError(
                f"{name} of the certificate must be {digits} lower-case hexadecimal digits."
            )
    return Certificate(**{name: document[name] for name in _names()})


def _signed(unsigned: Mapping[str, Any]) -> bytes:
    return files.dump(SCHEMA, _VERSION, unsigned).encode()


def _has_small_order(public_key: str) -> bool:
    """Whether a key is a point of order 8 or less, under which any text can be signed."""
    height = int.from_bytes(bytes.fromhex(public_key), "little") % 2**255 % _PRIME
    return min(height, _PRIME - height) in (0, 1, _EIGHTH)


def _private_key(path: Path) -> Any:
    try:
        from cryptography.hazmat.primitives import serialization as pem
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError:
        raise _missing() from None
    if not os.path.lexists(path):
        new_key = Ed25519PrivateKey.generate()
        kind = (pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
        files.write(path, new_key.private_bytes(*kind), files.OWNER_ONLY)
        return new_key
    loaded = _load_key(files.read_bytes(path))
    if not isinstance(loaded, Ed25519PrivateKey):
        raise InvalidInputError(f"{str(path)!r} does not hold an unencrypted Ed25519 key in PEM.")
    return loaded


def _load_key(content: bytes) -> Any:
    """Load an unencrypted key in PEM or OpenSSH format; None if it is neither."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization as pem

    with suppress(TypeError, ValueError, UnsupportedAlgorithm):
        if b"OPENSSH PRIVATE KEY" in content:
            return pem.load_ssh_private_key(content, None)
        if b"PRIVATE KEY" in content:
            return pem.load_pem_private_key(content, None)
        if content.startswith(b"ssh-"):
            return pem.load_ssh_public_key(content)
        return pem.load_pem_public_key(content)
    return None


def _public_key(key_or_file: str | Path) -> str:
    """Return a public key as 64 hexadecimal digits."""
    text = str(key_or_file)
    check_text(text, "public_key")
    if not text.startswith(("-----BEGIN", "ssh-")) and not _is_hex(text):
        if "\0" in text or not os.path.isfile(text):
            raise InvalidInputError(
                f"public_key is {shortened(text)}, which is neither 64 hexadecimal digits, nor a "
                "key in PEM, nor a file with one. Nothing was verified."
            )
        text = files.read_text(files.as_path(text))
    if _is_hex(text):
        return text.strip().lower()
    try:
        from cryptography.hazmat.primitives import serialization as pem
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise _missing() from None
    key = _load_key(text.strip().encode())
    if isinstance(key, ed25519.Ed25519PrivateKey):
        key = key.public_key()
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise InvalidInputError(
            "public_key does not hold an unencrypted Ed25519 key in PEM. Nothing was verified."
        )
    return str(key.public_bytes(pem.Encoding.Raw, pem.PublicFormat.Raw).hex())


def _is_hex(text: str) -> bool:
    return re.fullmatch("[0-9a-fA-F]{64}", text.strip()) is not None


def _missing() -> UnsupportedError:
    return UnsupportedError(
        "Certificates need the cryptography package: pip install 'quiltwork[sign]'."
    )
