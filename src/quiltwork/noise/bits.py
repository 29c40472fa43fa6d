"""Uniform random bits from the operating system.

The operating system's generator has no state in this process, so forks and threads share nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WORD_BITS = 32


def words(count: int) -> NDArray[np.uint32]:
    """Return `count` independent uniform 32-bit words."""
    import numpy as np

    return np.frombuffer(os.urandom(4 * count), dtype=np.uint32)


def word() -> int:
    """Return one uniform 32-bit word."""
    return int.from_bytes(os.urandom(4), "little")


def signs(count: int) -> NDArray[np.bool_]:
    """Return `count` independent fair coins, one bit of randomness each."""
    import numpy as np

    packed = np.frombuffer(os.urandom(-(-count // 8)), dtype=np.uint8)
    return np.unpackbits(packed, count=count).view(np.bool_)
