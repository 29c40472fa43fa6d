"""What the repository holds and the package does not: benchmarks and the papers' experiments."""

from __future__ import annotations

from pathlib import Path

from quiltwork.errors import UnsupportedError


def checkout_with(file: str, what: str, command: str) -> Path:
    """Find the repository that this package runs from, which holds the file."""
    import quiltwork

    root = Path(quiltwork.__file__).resolve().parents[2]
    if not (root / file).is_file():
        raise UnsupportedError(
            f"{what} live in the repository, not in the installed package; clone the repository "
            f"and run {command!r} there."
        )
    return root
