"""Which time points are protected: `secrets=(start, stop)`, or all of them."""

from __future__ import annotations

from typing import Any

from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, shortened


def read_secrets(secrets: Any, length: int) -> range:
    """Return the protected nodes: start..stop inclusive, or all.

    >>> read_secrets((2, 4), 9)
    range(2, 5)
    """
    if secrets is None:
        return range(1, length + 1)
    if not isinstance(secrets, (list, tuple)) or len(secrets) != 2:
        raise InvalidInputError(
            f"secrets must be (start, stop), the first and the last protected time point, not "
            f"{shortened(secrets)}."
        )
    start = integer(secrets[0], "The first protected time point", 1)
    stop = integer(secrets[1], "The last protected time point", start)
    if stop > length:
        raise InvalidInputError(
            f"The last protected time point is {stop}, but the series has {length}."
        )
    return range(start, stop + 1)
