"""`Curator`: what the API of a curator does, as methods."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from quiltwork import files
from quiltwork.beliefs import Belief, as_beliefs, beliefs_to_json
from quiltwork.client.connection import CuratorConnection, path
from quiltwork.client.records import (
    AnswerPreview,
    CollaborativeTable,
    Dataset,
    Holdout,
    Job,
    Released,
    Schedule,
    ScheduledRun,
    Score,
    Verification,
    read,
)
from quiltwork.exact import Number, positive_fraction
from quiltwork.queries.base import Query
from quiltwork.queries.document import to_document

_MEDIA_TYPES = {
    ".parquet": "application/vnd.apache.parquet",
    ".pq": "application/vnd.apache.parquet",
}


class Curator:
    """A curator at a URL, for one token.

    Args:
        url: such as "https://curator.example.org"; http only for this machine.
        token: as its owner handed it out.
        timeout: seconds to wait for an answer.

    Raises:
        InvalidInputError: for another URL, and what is no token.
    """

    def __init__(self, url: str, token: str, timeout: float = 60.0) -> None:
        """Connect to nothing yet."""
        self._at = CuratorConnection(url, token, timeout)

    def __repr__(self) -> str:
        """Show where it is, and no token."""
        return f"Curator({self._at.url!r})"

    def me(self) -> dict[str, Any]:
        """Say who the token is for, and what it allows."""
        return dict(self._at.told("GET", "/v1/me"))

    def datasets(self) -> list[Dataset]:
        """Return the datasets that the token may use."""
        return [read(Dataset, one) for one in self._at.pages("/v1/datasets")]

    def dataset(self, name: str) -> Dataset:
        """Return one dataset."""
        return read(Dataset, self._at.told("GET", path("datasets", name)))

    def register_series(
        self,
        name: str,
        beliefs: Belief | Sequence[Belief],
        budget: Number,
        value: str,
        *,
        text: str = "",
        **reading: Any,
    ) -> Dataset:
        """Register a series: `value` is the column of states; for `reading` see the API's page."""
        believed = json.loads(beliefs_to_json(as_beliefs(beliefs)))
        about = {"belief": believed, "value": value, **reading}
        body = {"name": name, "budget": _number(budget), "series": about, "text": text}
        return read(Dataset, self._at.told("POST", "/v1/datasets", body))

    def register_counts(
        self,
        name: str,
        columns: Mapping[str, Sequence[str]],
        budget: Number,
        *,
        text: str = "",
        **about: Any,
    ) -> Dataset:
        """Register people in public categories: columns, each with all its values."""
        listed = {column: list(labels) for column, labels in columns.items()}
        counts = {"columns": listed, **about}
        body = {"name": name, "budget": _number(budget), "counts": counts, "text": text}
        return read(Dataset, self._at.told("POST", "/v1/datasets", body))

    def add_rows(self, dataset: str, file: str | Path) -> dict[str, Any]:
        """Send a CSV or Parquet file; a series grows by its rows."""
        return self._sent("POST", path("datasets", dataset, "rows"), file)

    def share(
        self,
        dataset: str,
        member: str,
        cap: Number | None = None,
        reserved: Number | None = None,
    ) -> Dataset:
        """Let a member use a dataset; an analyst up to a cap, or with a reserved share."""
        given = {"cap": cap, "reserved": reserved}
        body = {name: _number(part) for name, part in given.items() if part is not None}
        where = path("datasets", dataset, "access", member)
        return read(Dataset, self._at.told("PUT", where, body, again=True))

    def preview(
        self, dataset: str, query: Query | Mapping[str, Any], epsilon: Number
    ) -> AnswerPreview:
        """Say what an answer would cost and how far off it would be; nothing is spent."""
        body = {"query": _document(query), "epsilon": _number(epsilon)}
        where = path("datasets", dataset, "preview")
        return read(AnswerPreview, self._at.told("POST", where, body, again=True))

    def ask(
        self,
        dataset: str,
        query: Query | Mapping[str, Any],
        epsilon: Number,
        key: str | None = None,
    ) -> Released:
        """Ask a question; under one key it is answered, and paid, once.

        Raises:
            BudgetExceeded: if it does not fit; nothing was spent.
        """
        body = {"query": _document(query), "epsilon": _number(epsilon)}
        where, used = path("datasets", dataset, "releases"), key or secrets.token_hex(16)
        return read(Released, self._at.told("POST", where, body, key=used, again=True))

    def releases(self, dataset: str) -> Iterator[Released]:
        """Go through what was released, oldest first."""
        return (
            read(Released, one) for one in self._at.pages(path("datasets", dataset, "releases"))
        )

    def ledger(self, dataset: str) -> Iterator[dict[str, Any]]:
        """Go through what was debited, oldest first."""
        return self._at.pages(path("datasets", dataset, "ledger"))

    def plan(
        self,
        dataset: str,
        questions: Sequence[Mapping[str, Any]],
        budget: Number | None = None,
    ) -> dict[str, Any]:
        """Find the noise with which questions to come cost a budget together."""
        listed = [{**one, "query": _document(one["query"])} for one in questions]
        body: dict[str, Any] = {"questions": listed}
        if budget is not None:
            body["budget"] = _number(budget)
        return dict(self._at.told("POST", path("datasets", dataset, "plan"), body, again=True))

    def delete_rows(self, dataset: str) -> None:
        """Delete all rows of a dataset; its ledger and releases stay."""
        self._at.told("DELETE", path("datasets", dataset, "rows"), again=True)

    def invite(
        self, member: str, role: Literal["owner", "provider", "analyst", "auditor"]
    ) -> dict[str, Any]:
        """Invite somebody."""
        return dict(self._at.told("POST", "/v1/members", {"name": member, "role": role}))

    def make_token(self, member: str, **narrowed: Any) -> str:
        """Make a token for somebody, perhaps for some datasets, actions and days; shown once."""
        made = self._at.told("POST", path("members", member, "tokens"), narrowed)
        return str(made["secret"])

    def revoke_token(self, member: str, token: str) -> None:
        """Revoke a token by its identity."""
        self._at.told("DELETE", path("members", member, "tokens", token), again=True)

    def unshare(self, dataset: str, member: str) -> None:
        """Take access to a dataset back."""
        self._at.told("DELETE", path("datasets", dataset, "access", member), again=True)

    def retire(self, dataset: str, reason: str = "no longer used") -> Dataset:
        """Release nothing more from a dataset, for good."""
        where = path("datasets", dataset, "retirement")
        return read(Dataset, self._at.told("POST", where, {"reason": reason}, again=True))

    def jobs(self) -> Iterator[Job]:
        """Go through the long work that was asked for, the latest first."""
        return (read(Job, one) for one in self._at.pages("/v1/jobs"))

    def job(self, job: str) -> Job:
        """Say where a job is."""
        return read(Job, self._at.told("GET", path("jobs", job)))

    def cancel(self, job: str) -> Job:
        """Cancel a job."""
        return read(Job, self._at.told("POST", path("jobs", job, "cancellation"), again=True))

    def preview_schedule(self, dataset: str, **asked: Any) -> dict[str, Any]:
        """Say what a schedule would cost as a whole; for `asked` see the API's page."""
        where = path("datasets", dataset, "schedules", "preview")
        return dict(self._at.told("POST", where, _schedule(asked), again=True))

    def make_schedule(self, dataset: str, key: str | None = None, **asked: Any) -> Schedule:
        """Make a schedule and pay for all its runs, once for each key.

        Raises:
            BudgetExceeded: if all of it does not fit; nothing was spent.
        """
        where, used = path("datasets", dataset, "schedules"), key or secrets.token_hex(16)
        made = self._at.told("POST", where, _schedule(asked), key=used, again=True)
        return _as_schedule(made)

    def schedules(self, dataset: str) -> Iterator[Schedule]:
        """Go through the schedules of a dataset, the latest first."""
        return map(_as_schedule, self._at.pages(path("datasets", dataset, "schedules")))

    def schedule(self, schedule: str) -> Schedule:
        """Return a schedule with its runs."""
        return _as_schedule(self._at.told("GET", path("schedules", schedule)))

    def end_schedule(self, schedule: str) -> Schedule:
        """Let no further run begin; what was debited stays debited."""
        return _as_schedule(self._at.told("POST", path("schedules", schedule, "end"), again=True))

    def run(self, schedule: str, number: int) -> dict[str, Any]:
        """Return the release of a run, as quiltwork writes it."""
        told = self._at.told("GET", path("schedules", schedule, "runs", str(number)))
        return dict(told["release"])

    def tables(self) -> list[CollaborativeTable]:
        """Return the collaborative tables that the token may use."""
        return [read(CollaborativeTable, one) for one in self._at.pages("/v1/tables")]

    def table(self, name: str) -> CollaborativeTable:
        """Return one table."""
        return read(CollaborativeTable, self._at.told("GET", path("tables", name)))

    def make_table(
        self,
        name: str,
        quasi_identifiers: Sequence[str],
        sensitive: str,
        k: int,
        l: int = 1,  # noqa: E741  (the literature's own name)
        m: int = 1,
    ) -> CollaborativeTable:
        """Make a table that providers give rows to."""
        rules = {"quasi_identifiers": list(quasi_identifiers), "sensitive": sensitive}
        body = {"name": name, "rules": {**rules, "k": k, "l": l, "m": m}}
        return read(CollaborativeTable, self._at.told("POST", "/v1/tables", body, again=True))

    def give_rows(self, table: str, file: str | Path) -> int:
        """Give rows to a table, in the place of those given before; return how many."""
        return int(self._sent("PUT", path("tables", table, "rows"), file)["rows"])

    def publish(self, table: str) -> Job:
        """Publish a table, once; a large one in the background."""
        return read(Job, self._at.told("POST", path("tables", table, "publication"), again=True))

    def published(self, table: str) -> str:
        """Return the published table as CSV."""
        return str(self._at.told("GET", path("tables", table, "publication"))["content"])

    def table_report(self, table: str) -> dict[str, Any]:
        """Say what a published table reveals, and who could break what."""
        return dict(self._at.told("GET", path("tables", table, "report")))

    def check_own_rows(self, table: str) -> dict[str, Any]:
        """Say what a provider learns from the published table with its own rows."""
        return dict(self._at.told("GET", path("tables", table, "check")))

    def holdouts(self) -> list[Holdout]:
        """Return the holdouts that the token may use."""
        return [read(Holdout, one) for one in self._at.pages("/v1/holdouts")]

    def holdout(self, name: str) -> Holdout:
        """Return one holdout."""
        return read(Holdout, self._at.told("GET", path("holdouts", name)))

    def register_holdout(
        self, name: str, train: str | Path | None, holdout: str | Path, **asked: Any
    ) -> Holdout:
        """Register a holdout, give its tables and open it; for `asked` see the API's page.

        A ladder (`mode="ladder"`) has no training table.
        """
        self._at.told("POST", "/v1/holdouts", {"name": name, **asked}, again=True)
        for side, file in (("train", train), ("holdout", holdout)):
            if file is not None:
                self._sent("PUT", path("holdouts", name, "tables", side), file)
        return read(Holdout, self._at.told("POST", path("holdouts", name, "opening"), again=True))

    def delete_tables(self, holdout: str) -> None:
        """Delete both tables of a holdout; its answers and the ledger stay."""
        self._at.told("DELETE", path("holdouts", holdout, "tables"), again=True)

    def score(
        self,
        holdout: str,
        predictions: Mapping[str, str],
        metric: str = "accuracy",
        key: str | None = None,
    ) -> Score:
        """Ask a holdout how good predictions are, one for every id; once for each key."""
        body = {"predictions": dict(predictions), "metric": metric}
        where, used = path("holdouts", holdout, "questions"), key or secrets.token_hex(16)
        return read(Score, self._at.told("POST", where, body, key=used, again=True))

    def standings(self, holdout: str) -> list[Score]:
        """Return every member's best answers."""
        found = self._at.told("GET", path("holdouts", holdout, "standings"))
        return [read(Score, one) for one in found["items"]]

    def scores(self, holdout: str) -> list[Score]:
        """Return one's own answers, in order; who made the holdout gets everybody's."""
        found = self._at.told("GET", path("holdouts", holdout, "scores"))
        return [read(Score, one) for one in found["items"]]

    def admit(self, kind: Literal["table", "holdout"], name: str, member: str) -> None:
        """Let a member use a table or a holdout."""
        self._at.told("PUT", path(f"{kind}s", name, "access", member), again=True)

    def dismiss(self, kind: Literal["table", "holdout"], name: str, member: str) -> None:
        """Take access to a table or a holdout back."""
        self._at.told("DELETE", path(f"{kind}s", name, "access", member), again=True)

    def log(self) -> Iterator[dict[str, Any]]:
        """Go through the audit log, oldest first."""
        return self._at.pages("/v1/log")

    def verify(self) -> Verification:
        """Let the curator check its chain of hashes and every total."""
        return read(Verification, self._at.told("POST", "/v1/log/verification", again=True))

    def _sent(self, method: str, where: str, file: str | Path) -> dict[str, Any]:
        kind = _MEDIA_TYPES.get(Path(file).suffix, "text/csv")
        return dict(self._at.told(method, where, files.contents(file), media_type=kind))


def _number(value: Number) -> str:
    return str(positive_fraction(value, "number"))


def _document(query: Query | Mapping[str, Any]) -> dict[str, Any]:
    return to_document(query) if isinstance(query, Query) else dict(query)


def _schedule(asked: Mapping[str, Any]) -> dict[str, Any]:
    return {**asked, "question": _document(asked["question"]), "epsilon": _number(asked["epsilon"])}


def _as_schedule(told: Mapping[str, Any]) -> Schedule:
    return read(Schedule, {**told, "runs": [read(ScheduledRun, one) for one in told["runs"]]})
