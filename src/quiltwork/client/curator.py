"""`Curator`: what the API of a curator does, as methods."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from quiltwork import files
from quiltwork.beliefs import Belief, as_beliefs, beliefs_to_json
from quiltwork.client.connection import CuratorConnection, path
from quiltwork.client.records import (
    AnswerPreview,
    CollaborativeTable,
    Dataset,
    Holdout,
    Job,
    Kind,
    Released,
    Score,
    Verification,
    read,
)
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, positive_fraction
from quiltwork.queries.document import to_document
from quiltwork.queries.query import Query

if TYPE_CHECKING:
    from quiltwork.holdout.final_ranking import FinalRanking

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
        return list(self._listed(Dataset, "datasets"))

    def dataset(self, name: str) -> Dataset:
        """Return one dataset."""
        return self._told(Dataset, "GET", "datasets", name)

    def register_series(
        self,
        name: str,
        beliefs: Belief | Sequence[Belief],
        budget: Number,
        value: str,
        *,
        text: str = "",
        delta: Number | None = None,
        **reading: Any,
    ) -> Dataset:
        """Register a series: `value` is the column of states; for `reading` see the API's page.

        With a `delta` it is accounted for in (ε, δ), and answered with Gaussian noise.
        """
        believed = json.loads(beliefs_to_json(as_beliefs(beliefs)))
        about = {"belief": believed, "value": value, **reading}
        body = {"name": name, "budget": _number(budget, "budget"), "series": about, "text": text}
        if delta is not None:
            body["delta"] = _number(delta, "delta")
        return self._told(Dataset, "POST", "datasets", body=body, again=False)

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
        body = {"name": name, "budget": _number(budget, "budget"), "counts": counts, "text": text}
        return self._told(Dataset, "POST", "datasets", body=body, again=False)

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
        body = {name: _number(part, name) for name, part in given.items() if part is not None}
        return self._told(Dataset, "PUT", "datasets", dataset, "access", member, body=body)

    def preview(
        self, dataset: str, query: Query | Mapping[str, Any], epsilon: Number
    ) -> AnswerPreview:
        """Say what an answer would cost and how far off it would be; nothing is spent."""
        body = {"query": _document(query), "epsilon": _number(epsilon, "epsilon")}
        return self._told(AnswerPreview, "POST", "datasets", dataset, "preview", body=body)

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
        body = {"query": _document(query), "epsilon": _number(epsilon, "epsilon")}
        used = key or secrets.token_hex(16)
        return self._told(Released, "POST", "datasets", dataset, "releases", body=body, key=used)

    def releases(self, dataset: str) -> Iterator[Released]:
        """Go through what was released, oldest first."""
        return self._listed(Released, "datasets", dataset, "releases")

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
        body: dict[str, Any] = {
            "questions": [{**one, "query": _document(one["query"])} for one in questions]
        }
        if budget is not None:
            body["budget"] = _number(budget, "budget")
        return dict(self._at.told("POST", path("datasets", dataset, "plan"), body, again=True))

    def delete_rows(self, dataset: str) -> None:
        """Delete all rows of a dataset; its ledger and releases stay."""
        self._deleted("datasets", dataset, "rows")

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
        self._deleted("members", member, "tokens", token)

    def unshare(self, dataset: str, member: str) -> None:
        """Take access to a dataset back."""
        self._deleted("datasets", dataset, "access", member)

    def retire(self, dataset: str, reason: str = "no longer used") -> Dataset:
        """Release nothing more from a dataset, for good."""
        body = {"reason": reason}
        return self._told(Dataset, "POST", "datasets", dataset, "retirement", body=body)

    def jobs(self) -> Iterator[Job]:
        """Go through the long work that was asked for, the latest first."""
        return self._listed(Job, "jobs")

    def job(self, job: str) -> Job:
        """Say where a job is."""
        return self._told(Job, "GET", "jobs", job)

    def cancel(self, job: str) -> Job:
        """Cancel a job."""
        return self._told(Job, "POST", "jobs", job, "cancellation")

    def tables(self) -> list[CollaborativeTable]:
        """Return the collaborative tables that the token may use."""
        return list(self._listed(CollaborativeTable, "tables"))

    def table(self, name: str) -> CollaborativeTable:
        """Return one table."""
        return self._told(CollaborativeTable, "GET", "tables", name)

    def make_table(
        self,
        name: str,
        quasi_identifiers: Sequence[str],
        sensitive: str,
        k: int,
        l: int = 1,  # noqa: E741  (the literature's own name)
        m: int = 1,
        **rules: Any,
    ) -> CollaborativeTable:
        """Make a table that providers give rows to; further `rules` are on the API's page."""
        roles = {"quasi_identifiers": list(quasi_identifiers), "sensitive": sensitive}
        body = {"name": name, "rules": {**roles, "k": k, "l": l, "m": m, **rules}}
        return self._told(CollaborativeTable, "POST", "tables", body=body)

    def give_rows(self, table: str, file: str | Path) -> int:
        """Give rows to a table, in the place of those given before; return how many."""
        return int(self._sent("PUT", path("tables", table, "rows"), file)["rows"])

    def publish(self, table: str) -> Job:
        """Publish a table, once; a large one in the background."""
        return self._told(Job, "POST", "tables", table, "publication")

    def published(self, table: str) -> str:
        """Return the published table as CSV."""
        return str(self._at.told("GET", path("tables", table, "publication"))["content"])

    def table_report(self, table: str) -> dict[str, Any]:
        """Say what a published table reveals, and who could break what."""
        return dict(self._at.told("GET", path("tables", table, "report")))

    def row_groups(self, table: str) -> str:
        """Return a provider's own rows as they were published, as CSV: which groups they are in."""
        return str(self._at.told("GET", path("tables", table, "row-groups"))["content"])

    def check_own_rows(self, table: str) -> dict[str, Any]:
        """Say what a provider learns from the published table with its own rows."""
        return dict(self._at.told("GET", path("tables", table, "check")))

    def holdouts(self) -> list[Holdout]:
        """Return the holdouts that the token may use."""
        return list(self._listed(Holdout, "holdouts"))

    def holdout(self, name: str) -> Holdout:
        """Return one holdout."""
        return self._told(Holdout, "GET", "holdouts", name)

    def register_holdout(
        self, name: str, train: str | Path | None, holdout: str | Path, **asked: Any
    ) -> Holdout:
        """Register a holdout, give its tables and open it; for `asked` see the API's page.

        A ladder (`mode="ladder"`) has no training table. If a table is refused nothing stays, and
        the name is free again.
        """
        given = {"train": train, "holdout": holdout}
        sent = {side: files.read_bytes(file) for side, file in given.items() if file is not None}
        self._at.told("POST", "/v1/holdouts", {"name": name, **asked}, again=True)
        try:
            for side, content in sent.items():
                where = path("holdouts", name, "tables", side)
                self._at.told("PUT", where, content, media_type="text/csv")
            return self._told(Holdout, "POST", "holdouts", name, "opening")
        except InvalidInputError:
            self.withdraw_holdout(name)
            raise

    def withdraw_holdout(self, name: str) -> None:
        """Take back a holdout that was never opened; its name is free again."""
        self._deleted("holdouts", name)

    def delete_tables(self, holdout: str) -> None:
        """Delete both tables of a holdout; its answers and the ledger stay."""
        self._deleted("holdouts", holdout, "tables")

    def score(
        self,
        holdout: str,
        predictions: Mapping[Any, Any],
        metric: str = "accuracy",
        key: str | None = None,
    ) -> Score:
        """Ask a holdout how good predictions are, as {"17": 1} for every id; once for each key."""
        from quiltwork.holdout.prediction_tables import predictions_by_id

        body = {"predictions": predictions_by_id(predictions, "predictions"), "metric": metric}
        used = key or secrets.token_hex(16)
        return self._told(Score, "POST", "holdouts", holdout, "questions", body=body, key=used)

    def choose(self, holdout: str, number: int) -> Holdout:
        """Name the submission of one's own that is scored at the end; until then it may change."""
        return self._told(Holdout, "PUT", "holdouts", holdout, "choice", body={"number": number})

    def finish(self, holdout: str) -> FinalRanking:
        """End a competition: score what every member named on the rows that were kept apart."""
        self._at.told("POST", path("holdouts", holdout, "end"), again=True)
        return self.ranking(holdout)

    def ranking(self, holdout: str) -> FinalRanking:
        """Return how a competition ended: who is ahead, and who cannot be told apart."""
        from quiltwork.holdout.final_ranking import ranking_from_body

        return ranking_from_body(self._at.told("GET", path("holdouts", holdout, "ranking")))

    def standings(self, holdout: str) -> list[Score]:
        """Return every member's best answers."""
        return self._scores(holdout, "standings")

    def scores(self, holdout: str) -> list[Score]:
        """Return one's own answers, in order; who made the holdout gets everybody's."""
        return self._scores(holdout, "scores")

    def _scores(self, holdout: str, which: str) -> list[Score]:
        found = self._at.told("GET", path("holdouts", holdout, which))
        return [read(Score, one) for one in found["items"]]

    def admit(self, kind: Literal["table", "holdout"], name: str, member: str) -> None:
        """Let a member use a table or a holdout."""
        self._at.told("PUT", path(f"{kind}s", name, "access", member), again=True)

    def dismiss(self, kind: Literal["table", "holdout"], name: str, member: str) -> None:
        """Take access to a table or a holdout back."""
        self._deleted(f"{kind}s", name, "access", member)

    def log(self) -> Iterator[dict[str, Any]]:
        """Go through the audit log, oldest first."""
        return self._at.pages("/v1/log")

    def verify(self) -> Verification:
        """Let the curator check its chain of hashes and every total."""
        return self._told(Verification, "POST", "log", "verification")

    def _told(
        self,
        kind: type[Kind],
        method: str,
        *where: str,
        body: Any = None,
        key: str | None = None,
        again: bool = True,
    ) -> Kind:
        return read(kind, self._at.told(method, path(*where), body, key=key, again=again))

    def _listed(self, kind: type[Kind], *where: str) -> Iterator[Kind]:
        return (read(kind, one) for one in self._at.pages(path(*where)))

    def _deleted(self, *where: str) -> None:
        self._at.told("DELETE", path(*where), again=True)

    def _sent(self, method: str, where: str, file: str | Path) -> dict[str, Any]:
        kind = _MEDIA_TYPES.get(Path(file).suffix, "text/csv")
        return dict(self._at.told(method, where, files.read_bytes(file), media_type=kind))


def _number(value: Number, name: str) -> str:
    return str(positive_fraction(value, name))


def _document(query: Query | Mapping[str, Any]) -> dict[str, Any]:
    return to_document(query) if isinstance(query, Query) else dict(query)
