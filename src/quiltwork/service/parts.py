"""What a curator is made of. A new part is a line here."""

from __future__ import annotations

from quiltwork.service import log, members
from quiltwork.service.routes import Part

PARTS: tuple[Part, ...] = (members.PART, log.PART)
