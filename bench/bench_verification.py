"""What checking a published table costs beside making it, in the same run.

    python -m bench.bench_verification

Needs Adult in the folder that QUILTWORK_SHARED names, or in ../shared. Tables are Adult drawn again
for twelve providers. `verify_published` is given the rows of all with the options that made the
table, and makes it again where boxes overlap, or the row groups.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray

from bench.bench_anonymize import CONSTRAINT, QUASI, adult, enlarged
from bench.harness import compare
from quiltwork.tables import Table, anonymize, verify_published
from quiltwork.tables.providers.originals import PublishedVerdict

ROWS = 200_000
PROVIDERS = 12
M = 3
REPEATS = 3


def unlike_providers(age: NDArray[np.int64]) -> NDArray[np.int64]:
    """Deal rows out to providers who see different ages, but for three in ten rows."""
    rng = np.random.default_rng(12)
    owner = np.argsort(np.argsort(age, kind="stable")) * PROVIDERS // len(age)
    return np.where(rng.random(len(age)) < 0.3, rng.integers(0, PROVIDERS, len(age)), owner)


class Case:
    """A table of so many rows, what a method publishes of it, and who checks that."""

    def __init__(self, rows: int, method: Any) -> None:
        """Make the table and its row groups."""
        frame = enlarged(adult(), rows)
        self.frame = frame.assign(provider=unlike_providers(frame["age"].to_numpy()))
        self.method = method
        made = self.make()
        self.shown = made.frame
        parts = made.row_groups().items()
        told = [part.to_pandas().assign(provider=int(name)) for name, part in parts]
        self.told = pandas.concat(told, ignore_index=True)

    def table(self, frame: pandas.DataFrame, provider: str | None) -> Table:
        """A table that is encoded anew."""
        return Table(frame, provider, QUASI, "occupation")

    def make(self) -> Any:
        """Publish it, from the frame on."""
        return anonymize(self.table(self.frame, "provider"), CONSTRAINT, M, self.method)

    def verify(self, row_groups: bool = False) -> PublishedVerdict:
        """Verify what was published, from the frames on."""
        found = verify_published(
            self.table(self.shown, None),
            self.table(self.frame, "provider"),
            CONSTRAINT,
            M,
            row_groups=self.table(self.told, "provider") if row_groups else None,
            made={"method": self.method},
        )
        assert found.private, found.explain()
        return found

    def published(self) -> Any:
        """Publish it, frame included."""
        made = self.make()
        return made, made.frame

    def reported(self) -> str:
        """Publish it with its report as a page."""
        made, _ = self.published()
        return str(made.report().html)


def main() -> None:
    for method in ("provider-aware", "baseline"):
        case = Case(ROWS, method)
        compare(
            f"Verify what {method} made of 200,000 rows",
            {
                "anonymize": case.published,
                "verify --originals": case.verify,
                "verify --originals with row groups": partial(case.verify, row_groups=True),
            },
            repeats=REPEATS,
            memory=False,
        )
    half, whole = (Case(rows, "provider-aware") for rows in (ROWS, 2 * ROWS))
    assert half.verify().made_again
    assert whole.verify().made_again
    compare(
        "Verify originals of twice as many rows",
        {"200,000 rows": half.verify, "400,000 rows": whole.verify},
        repeats=REPEATS,
        memory=False,
    )
    compare(
        "Anonymize 200,000 rows with a report",
        {"anonymize": half.published, "anonymize --report": half.reported},
        repeats=REPEATS,
        memory=False,
    )


if __name__ == "__main__":
    main()
