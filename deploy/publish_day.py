#!/usr/bin/env python3
"""Publish the histogram of each local day of a curator's series, once.

    publish_day.py                  the last seven days that are over and have arrived
    publish_day.py 2026-03-29       this day

Run it as often as you like: a day is its question's key, so it is answered, and paid, once.
QUILTWORK_CURATOR is the curator's address, QUILTWORK_TOKEN a token that may ask about the dataset.
"""

import os
import sys
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from quiltwork.client import Curator
from quiltwork.errors import QuiltworkError

DATASET, EPSILON = "steps", 0.02
ZONE = ZoneInfo("Europe/Berlin")
FIRST = datetime(2026, 1, 1, tzinfo=ZONE)  # when time point 1 begins
STEP = timedelta(minutes=10)


def window(day: date) -> list[int]:
    """The first and the last time point of a local day, be it of 23, 24 or 25 hours."""
    midnights = (datetime.combine(one, time(), ZONE) for one in (day, day + timedelta(days=1)))
    first, after = ((at.astimezone(UTC) - FIRST.astimezone(UTC)) // STEP for at in midnights)
    return [first + 1, after]


def publish(curator: Curator, day: date) -> None:
    """Ask under the day as key; the answer is the stored one if there is one."""
    question = {"kind": "histogram", "window": window(day)}
    answer = curator.ask(DATASET, question, EPSILON, key=f"{DATASET}-{day}")
    print(day, dict(zip(answer.cells, answer.values, strict=True)))


def main(days: list[str]) -> int:
    """Publish some days; the exit code says whether all of them were."""
    curator = Curator(os.environ["QUILTWORK_CURATOR"], os.environ["QUILTWORK_TOKEN"])
    arrived, today = curator.dataset(DATASET).arrived or 0, datetime.now(ZONE).date()
    lately = [today - timedelta(days=back) for back in range(7, 0, -1)]
    wanted = [date.fromisoformat(day) for day in days] or [
        day for day in lately if day >= FIRST.date() and window(day)[1] <= arrived
    ]
    failed = 0
    for day in wanted:
        try:
            publish(curator, day)
        except QuiltworkError as error:
            failed += 1
            print(day, error, file=sys.stderr)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
