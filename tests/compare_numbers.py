"""Compare what `every_number.py` wrote on several machines: `python compare_numbers.py A B …`.

Within a relative 1e-9, which is what another libm may move and `verify` calls equal; the command
fails with the cases that are further apart.
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path

NEAR = 1e-9


def read(value: object) -> list[float | str]:
    """Numbers, written exactly; a refusal stays its name."""
    if isinstance(value, list):
        return [one for part in value for one in read(part)]
    text = str(value)
    try:
        return [float.fromhex(text) if "x" in text else float(Fraction(text))]
    except ValueError:
        return [text]


def apart(one: object, other: object) -> bool:
    """Whether two results of a case are further apart than rounding explains."""
    left, right = read(one), read(other)
    if len(left) != len(right):
        return True
    return any(
        abs(a - b) > NEAR * max(abs(a), abs(b))
        if isinstance(a, float) and isinstance(b, float)
        else a != b
        for a, b in zip(left, right, strict=True)
    )


def main() -> None:
    first, *others = sys.argv[1:]
    expected = json.loads(Path(first).read_text(encoding="utf-8"))
    failed = False
    for path in others:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        if expected.keys() != found.keys():
            sys.exit(f"{path} is about other cases than {first}.")
        far = [name for name in expected if apart(expected[name], found[name])]
        same = sum(expected[name] == found[name] for name in expected)
        print(f"{path}: {same} of {len(expected)} cases to the last digit, {len(far)} too far")
        for name in far:
            print(f"  {name}: {read(found[name])} instead of {read(expected[name])}")
        failed = failed or bool(far)
    sys.exit(failed)


if __name__ == "__main__":
    main()
