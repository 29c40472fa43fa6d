"""Numbers about requests for Prometheus: how many, how long; never a value, a name or a dataset."""

from __future__ import annotations

from collections import Counter


class Metrics:
    """Counts of answers by route and status, and the seconds they took; used by one event loop."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self._answers: Counter[tuple[str, int]] = Counter()
        self._seconds: Counter[str] = Counter()

    def saw(self, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self._answers[route, status] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]

    def text(self) -> str:
        """Write them in the text format of Prometheus."""
        lines = ["# TYPE quiltwork_requests_total counter"]
        lines += [
            f'quiltwork_requests_total{{route="{route}",status="{status}"}} {count}'
            for (route, status), count in sorted(self._answers.items())
        ]
        lines.append("# TYPE quiltwork_request_seconds_total counter")
        lines += [
            f'quiltwork_request_seconds_total{{route="{route}"}} {seconds:.6f}'
            for route, seconds in sorted(self._seconds.items())
        ]
        return "\n".join([*lines, ""])
