"""Progress on Spark: passes that decide the top of the tree, then records of finished subtrees.

Workers count the records that they have done; Spark adds them up when a task ends. A job runs in a
thread meanwhile, so that the callback is called where `anonymize` was.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from math import ceil, log2
from typing import Any, TypeVar

from quiltwork.tables.partitioning.mondrian import Progress
from quiltwork.tables.spark.tree import Measure, Measurer, Router

SECONDS = 0.5
"""How often the callback is told."""

Result = TypeVar("Result")


class Watch:
    """Tells a callback how far the work is; without one, does nothing.

    Attributes:
        tell: what workers call with the records that they have done; None if nobody asks, or if
            Spark runs elsewhere (Connect) and cannot count them.
    """

    def __init__(self, session: Any, progress: Progress | None, rows: int) -> None:
        """Start with no record done."""
        self._session, self._progress, self._rows = session, progress, rows
        self._context = None if progress is None else getattr(session, "sparkContext", None)
        self._done = None if self._context is None else self._context.accumulator(0)
        self.tell: Callable[[int], object] | None = None
        if self._done is not None:
            self.tell = self._done.add

    def passes(self, measure: Measurer, most_rows: int) -> Measurer:
        """Return the same function that tells after every pass, of about as many as there will be.

        Nodes are halved until they have at most `most_rows` records.
        """
        progress, rows = self._progress, self._rows
        if progress is None:
            return measure
        expected = 1 + max(0, ceil(log2(rows / most_rows)))
        done = 0

        def told(router: Router, nodes: list[int]) -> dict[int, Measure]:
            nonlocal done
            found = measure(router, nodes)
            done += 1
            progress(min(done * rows // expected, rows), rows)
            return found

        return told

    def run(self, job: Callable[[], Result]) -> Result:
        """Run a job, and tell how many records are done until it ends.

        A callback that raises ends the job.
        """
        if self._progress is None or self._context is None:
            return job()
        from pyspark import inheritable_thread_target

        tag = f"quiltwork-{id(self)}"
        inherit: Any = inheritable_thread_target(self._session)
        tagged = inherit(_tagged(self._context, tag, job))
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(tagged)
            try:
                while wait([future], SECONDS).not_done:
                    self._progress(self._count(), self._rows)
            except BaseException:
                self._context.cancelJobsWithTag(tag)
                raise
            found: Result = future.result()
        self._progress(self._rows, self._rows)
        return found

    def _count(self) -> int:
        """Return the records that are done; a task that was run again counts twice."""
        return 0 if self._done is None else min(int(self._done.value), self._rows)


def _tagged(context: Any, tag: str, job: Callable[[], Result]) -> Callable[[], Result]:
    """Return the job, under a name by which it can be ended."""

    def run() -> Result:
        context.addJobTag(tag)
        return job()

    return run
