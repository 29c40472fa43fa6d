"""A digest of beliefs, by which releases, counts and ledgers tell whether they mean the same."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from quiltwork.beliefs import Belief, beliefs_to_json


def digest(members: tuple[Belief, ...]) -> str:
    """Return the SHA-256 of what the beliefs' JSON claims: not where they came from."""
    content = _claims(json.loads(beliefs_to_json(members)))
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _claims(document: Any) -> Any:
    """Leave out sources, and grids that are unknown, which older releases did not mention."""
    if isinstance(document, dict):
        told = {k: v for k, v in document.items() if k != "sources" and (k, v) != ("grid", None)}
        return {k: _claims(v) for k, v in told.items()}
    return [_claims(v) for v in document] if isinstance(document, list) else document
