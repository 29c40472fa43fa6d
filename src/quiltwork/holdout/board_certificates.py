"""Certificates: a signed statement of how a board stands, which anybody can check offline.

It has the board's name, the date, what stands in it, what is promised, and the digest of the log
that it was taken from: whoever has the log can replay the rest. Signed with Ed25519 by the
`cryptography` package (the extra `sign`); the signature covers every field.
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
    read_chained,
    sealed_lines,
    split_lines,
)
from quiltwork.holdout.transcript import Transcript, read_transcript
from quiltwork.results import ResultBase

SCHEMA, _VERSION = "board-certificate", 1
_PRIME = 2**255 - 19
_EIGHTH = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
"""The height of the points of order 8 on the curve, with the sign for which it is less."""


@dataclass(frozen=True)
class Certificate(ResultBase):
    """A signed statement of how a board stands.

    Attributes:
        board: its name.
        date: when it was signed, in UTC.
        statement: what stands in it.
        promise: what the board promises about that.
        digest: the SHA-256 of the last line of its log.
        public_key: of who signed, 64 hexadecimal digits.
        signature: over all of this, 128 hexadecimal digits.
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
        """Say what is certified, by whom."""
        return (
            f"{self.board}, {self.date}\n{self.statement}\n{self.promise}\nLog {self.digest}\n"
            f"Signed by {self.public_key}"
        )


def certify(folder: str, key: str | Path) -> Certificate:
    """Sign how the leaderboard or the holdout of a folder stands.

    `key` is a file with an Ed25519 key in PEM; if there is none it is made, for its owner only.

    Raises:
        InvalidInputError: if nothing was scored yet, or the file holds no such key.
        UnsupportedError: without the `cryptography` package.
    """
    folders.load(folder)
    path = folders.board_path(folder)
    path = path if path.exists() else folders.transcript_path(folder)
    text = sealed_lines(path)
    found = read_transcript(text)
    if not found.entries:
        raise InvalidInputError("Nothing was submitted yet, so there is nothing to certify.")
    private = _private_key(files.as_path(key))
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    unsigned = {
        "board": found.about.name or Path(folder).resolve().name,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "statement": _statement(found),
        "promise": promise_of(found).words,
        "digest": line_hash(split_lines(text)[-1]),
        "public_key": private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex(),
    }
    return Certificate(**unsigned, signature=private.sign(_signed(unsigned)).hex())


def _statement(found: Transcript) -> str:
    """Say how a board stands, and in which ways its metric is not the one of textbooks."""
    asked = counted(len(found.entries), "question" if found.rule.kind == "rounds" else "submission")
    if not found.about.scorings:
        return f"{asked} answered."
    status, scoring = status_of(found), found.about.scorings[0]
    if status.ranking is not None:
        ranked = "; ".join(
            f"{one.rank}. {one.team} {one.value:.6g} ({one.low:.4g} to {one.high:.4g}), "
            f"group {one.group}"
            for one in status.ranking.scores
        )
        told = f"{status.ranking.explain()}\n{ranked}."
    elif status.places and status.places[0].value is not None:
        first = status.places[0]
        told = (
            f"{status.metric} of {first.team}: {first.value:.6g}, in truth between {first.low:.6g} "
            f"and {first.high:.6g}."
        )
    else:
        told = "No score was told."
    return f"After {asked} on {status.asked_rows:,} rows. {told}{_stated(scoring)}"


def _stated(scoring: Scoring) -> str:
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
    return f" {metric.name} is {'; '.join(told)}." if told else ""


def verify_certificate(
    text: str | bytes, public_key: str | Path | None = None, log: str | Path | None = None
) -> Certificate:
    """Check a certificate: its signature, whose it is, and the log that it speaks of.

    Args:
        text: what `Certificate.to_json` wrote.
        public_key: of whom it must be: 64 hexadecimal digits, a key in PEM or as OpenSSH writes it
            (public or private), or the name of a file with one; without it, it is only known that
            the text is as signed.
        log: a file that must have the line that it names; each line must carry the hash of the one
            before, so that those up to it are the ones that were signed.

    Raises:
        InvalidInputError: if it is no certificate.
        StorageError: if it was changed, is signed by another, or belongs to another log.
    """
    document = files.load(text, SCHEMA, (_VERSION,))
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
    if log is not None:
        lines = split_lines(files.read_text(files.as_path(log)))
        read_chained(lines)
        if found.digest not in map(line_hash, lines):
            raise StorageError("No line of the log has the digest that is certified.")
    return found


def _names() -> list[str]:
    return [field.name for field in fields(Certificate)]


def _read(document: Mapping[str, Any]) -> Certificate:
    if {*_names(), "schema", "version"} != set(document):
        raise InvalidInputError(
            "The certificate has fields that none has, which nothing signs, or lacks some."
        )
    for name in _names():
        if not isinstance(document[name], str):
            raise InvalidInputError(
                f"{name} of the certificate is {shortened(document[name])}, and must be text."
            )
    for name, digits in (("digest", 64), ("public_key", 64), ("signature", 128)):
        if not re.fullmatch(f"[0-9a-f]{{{digits}}}", document[name]):
            raise InvalidInputError(
                f"{name} of the certificate must be {digits} hexadecimal digits, in small letters."
            )
    return Certificate(**{name: document[name] for name in _names()})


def _signed(unsigned: Mapping[str, Any]) -> bytes:
    return files.dump(SCHEMA, _VERSION, unsigned).encode()


def _is_small(public_key: str) -> bool:
    """Whether a key is a point of order 8 or less, with which every text can be made to fit."""
    height = int.from_bytes(bytes.fromhex(public_key), "little") % 2**255 % _PRIME
    return min(height, _PRIME - height) in (0, 1, _EIGHTH)


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
    found = _loaded(files.read_bytes(path))
    if not isinstance(found, Ed25519PrivateKey):
        raise InvalidInputError(f"{str(path)!r} holds no Ed25519 key in PEM without a password.")
    return found


def _loaded(content: bytes) -> Any:
    """Read a key in PEM or as OpenSSH writes it; None if it is none that needs no password."""
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


def _public_key(given: str | Path) -> str:
    """Read a public key, as 64 hexadecimal digits."""
    text = str(given)
    check_text(text, "public_key")
    if not text.startswith(("-----BEGIN", "ssh-")) and not _is_hex(text):
        if "\0" in text or not os.path.isfile(text):
            raise InvalidInputError(
                f"public_key is {shortened(text)}, which is neither 64 hexadecimal digits, nor a "
                "key in PEM, nor a file with one. Nothing was compared."
            )
        text = files.read_text(files.as_path(text))
    if _is_hex(text):
        return text.strip().lower()
    try:
        from cryptography.hazmat.primitives import serialization as pem
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise _missing() from None
    key = _loaded(text.strip().encode())
    if isinstance(key, ed25519.Ed25519PrivateKey):
        key = key.public_key()
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise InvalidInputError(
            "public_key holds no Ed25519 key in PEM without a password. Nothing was compared."
        )
    return str(key.public_bytes(pem.Encoding.Raw, pem.PublicFormat.Raw).hex())


def _is_hex(text: str) -> bool:
    return re.fullmatch("[0-9a-fA-F]{64}", text.strip()) is not None


def _missing() -> UnsupportedError:
    return UnsupportedError(
        "Certificates need the cryptography package: pip install 'quiltwork[sign]'."
    )
