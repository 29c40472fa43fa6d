"""`Curator`: the operations of a curator's API, as methods."""

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
    from_document,
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
    """A client of the curator at a URL, with one token.

    Idempotent requests are retried when the connection breaks. Refusals are raised as the errors
    that the same operation raises locally, such as `BudgetExceeded`; also `Forbidden` and
    `NotFound`.

    Args:
        url: such as "https://curator.example.org"; plain http only for this machine.
        token: a token made by the curator.
        timeout: seconds to wait for an answer.

    Raises:
        InvalidInputError: for a malformed URL or token.

    >>> curator = Curator("https://curator.example.org", "qwk_…".replace("…", 72 * "0"))
    >>> curator
    Curator('https://curator.example.org')
    """

    def __init__(self, url: str, token: str, timeout: float = 60.0) -> None:
        """Check the URL and the token; nothing is sent yet."""
        self._connection = CuratorConnection(url, token, timeout)

    def __repr__(self) -> str:
        """Return the URL, without the token."""
        return f"Curator({self._connection.url!r})"

    def me(self) -> dict[str, Any]:
        """Return the token's member and role, and the actions that it allows."""
        return dict(self._connection.request("GET", "/v1/me"))

    def datasets(self) -> list[Dataset]:
        """Return all datasets that the token may use."""
        return list(self._list(Dataset, "datasets"))

    def dataset(self, name: str) -> Dataset:
        """Return one dataset."""
        return self._call(Dataset, "GET", "datasets", name)

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
        """Register a series; `value` is the column of states, `reading` as on the API's page.

        With a `delta` the account is in (ε, δ), and answers have Gaussian noise.
        """
        believed = json.loads(beliefs_to_json(as_beliefs(beliefs)))
        about = {"belief": believed, "value": value, **reading}
        body = {"name": name, "budget": _number(budget, "budget"), "series": about, "text": text}
        if delta is not None:
            body["delta"] = _number(delta, "delta")
        return self._call(Dataset, "POST", "datasets", body=body, retry=False)

    def register_counts(
        self,
        name: str,
        columns: Mapping[str, Sequence[str]],
        budget: Number,
        *,
        text: str = "",
        **about: Any,
    ) -> Dataset:
        """Register counts of people, by columns with all their public categories."""
        listed = {column: list(labels) for column, labels in columns.items()}
        counts = {"columns": listed, **about}
        body = {"name": name, "budget": _number(budget, "budget"), "counts": counts, "text": text}
        return self._call(Dataset, "POST", "datasets", body=body, retry=False)

    def add_rows(self, dataset: str, file: str | Path) -> dict[str, Any]:
        """Add the rows of a CSV or Parquet file; they extend a series."""
        return self._upload("POST", path("datasets", dataset, "rows"), file)

    def share(
        self,
        dataset: str,
        member: str,
        cap: Number | Literal["keep"] | None = "keep",
        reserved: Number | Literal["keep"] | None = "keep",
    ) -> Dataset:
        """Give a member access to a dataset; an analyst may get a cap or a reserved share.

        What is left out stays as it was; None lifts it.
        """
        limits = {"cap": cap, "reserved": reserved}
        body = {
            name: None if value is None else _number(value, name)
            for name, value in limits.items()
            if value != "keep"
        }
        return self._call(Dataset, "PUT", "datasets", dataset, "access", member, body=body)

    def preview(
        self, dataset: str, query: Query | Mapping[str, Any], epsilon: Number
    ) -> AnswerPreview:
        """Return the cost and the expected error of an answer; nothing is spent."""
        body = {"query": _document(query), "epsilon": _number(epsilon, "epsilon")}
        return self._call(AnswerPreview, "POST", "datasets", dataset, "preview", body=body)

    def ask(
        self,
        dataset: str,
        query: Query | Mapping[str, Any],
        epsilon: Number,
        key: str | None = None,
    ) -> Released:
        """Ask a question; the budget is debited first.

        Args:
            dataset: the dataset's name.
            query: a query of `quiltwork.queries`, or its document; for counts a table document.
            epsilon: the privacy level.
            key: an idempotency key: a retry under the same key gets the stored answer and costs
                nothing. A random one by default, which protects the client's own retries only.

        Raises:
            BudgetExceeded: if the budget does not allow it; nothing was spent.
        """
        body = {"query": _document(query), "epsilon": _number(epsilon, "epsilon")}
        key = key or secrets.token_hex(16)
        return self._call(Released, "POST", "datasets", dataset, "releases", body=body, key=key)

    def releases(self, dataset: str) -> Iterator[Released]:
        """Yield all releases, oldest first."""
        return self._list(Released, "datasets", dataset, "releases")

    def ledger(self, dataset: str) -> Iterator[dict[str, Any]]:
        """Yield all debits, oldest first."""
        return self._connection.pages(path("datasets", dataset, "ledger"))

    def plan(
        self,
        dataset: str,
        questions: Sequence[Mapping[str, Any]],
        budget: Number | None = None,
    ) -> dict[str, Any]:
        """Return the noise at which future questions together cost a budget."""
        body: dict[str, Any] = {
            "questions": [{**item, "query": _document(item["query"])} for item in questions]
        }
        if budget is not None:
            body["budget"] = _number(budget, "budget")
        return dict(
            self._connection.request("POST", path("datasets", dataset, "plan"), body, retry=True)
        )

    def delete_rows(self, dataset: str) -> None:
        """Delete all rows of a dataset; its ledger and releases stay."""
        self._delete("datasets", dataset, "rows")

    def invite(
        self, member: str, role: Literal["owner", "provider", "analyst", "auditor"]
    ) -> dict[str, Any]:
        """Invite a member, in one role."""
        return dict(self._connection.request("POST", "/v1/members", {"name": member, "role": role}))

    def make_token(self, member: str, **limits: Any) -> str:
        """Make a token and return its secret; `limits` are `datasets`, `actions` and `days`."""
        issued = self._connection.request("POST", path("members", member, "tokens"), limits)
        return str(issued["secret"])

    def revoke_token(self, member: str, token: str) -> None:
        """Revoke a token by its id."""
        self._delete("members", member, "tokens", token)

    def unshare(self, dataset: str, member: str) -> None:
        """Withdraw a member's access to a dataset."""
        self._delete("datasets", dataset, "access", member)

    def retire(self, dataset: str, reason: str = "no longer used") -> Dataset:
        """Retire a dataset: nothing more is ever released from it."""
        body = {"reason": reason}
        return self._call(Dataset, "POST", "datasets", dataset, "retirement", body=body)

    def jobs(self) -> Iterator[Job]:
        """Yield the jobs that the member started, the latest first."""
        return self._list(Job, "jobs")

    def job(self, job: str) -> Job:
        """Return the state and progress of a job."""
        return self._call(Job, "GET", "jobs", job)

    def cancel(self, job: str) -> Job:
        """Cancel a job at once."""
        return self._call(Job, "POST", "jobs", job, "cancellation")

    def tables(self) -> list[CollaborativeTable]:
        """Return all collaborative tables that the token may use."""
        return list(self._list(CollaborativeTable, "tables"))

    def table(self, name: str) -> CollaborativeTable:
        """Return one collaborative table."""
        return self._call(CollaborativeTable, "GET", "tables", name)

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
        """Create a table for which providers upload rows; further `rules` as on the API's page."""
        roles = {"quasi_identifiers": list(quasi_identifiers), "sensitive": sensitive}
        body = {"name": name, "rules": {**roles, "k": k, "l": l, "m": m, **rules}}
        return self._call(CollaborativeTable, "POST", "tables", body=body)

    def give_rows(self, table: str, file: str | Path) -> int:
        """Upload rows for a table, replacing earlier ones; return their number."""
        return int(self._upload("PUT", path("tables", table, "rows"), file)["rows"])

    def publish(self, table: str) -> Job:
        """Start the publication of a table, which happens once, and return its job."""
        return self._call(Job, "POST", "tables", table, "publication")

    def published(self, table: str) -> str:
        """Return the published table as CSV."""
        return str(self._connection.request("GET", path("tables", table, "publication"))["content"])

    def table_report(self, table: str) -> dict[str, Any]:
        """Return the risk of a published table and the coalitions that could break it."""
        return dict(self._connection.request("GET", path("tables", table, "report")))

    def row_groups(self, table: str) -> str:
        """Return a provider's own rows as published, as CSV, which shows their groups."""
        return str(self._connection.request("GET", path("tables", table, "row-groups"))["content"])

    def check_own_rows(self, table: str) -> dict[str, Any]:
        """Return what a provider can infer from the published table and its own rows."""
        return dict(self._connection.request("GET", path("tables", table, "check")))

    def holdouts(self) -> list[Holdout]:
        """Return all holdouts that the token may use."""
        return list(self._list(Holdout, "holdouts"))

    def holdout(self, name: str) -> Holdout:
        """Return one holdout."""
        return self._call(Holdout, "GET", "holdouts", name)

    def register_holdout(
        self, name: str, train: str | Path | None, holdout: str | Path, **spec: Any
    ) -> Holdout:
        """Register a holdout, upload its tables and open it; `spec` as on the API's page.

        A ladder (`mode="ladder"`) has no training table. If a table is refused, the holdout is
        withdrawn and its name is free again.
        """
        tables = {"train": train, "holdout": holdout}
        contents = {side: files.read_bytes(f) for side, f in tables.items() if f is not None}
        self._connection.request("POST", "/v1/holdouts", {"name": name, **spec}, retry=True)
        try:
            for side, content in contents.items():
                target = path("holdouts", name, "tables", side)
                self._connection.request("PUT", target, content, media_type="text/csv")
            return self._call(Holdout, "POST", "holdouts", name, "opening")
        except InvalidInputError:
            self.withdraw_holdout(name)
            raise

    def withdraw_holdout(self, name: str) -> None:
        """Withdraw a holdout that was never opened; its name is free again."""
        self._delete("holdouts", name)

    def delete_tables(self, holdout: str) -> None:
        """Delete the tables of a holdout; its answers and the ledger stay."""
        self._delete("holdouts", holdout, "tables")

    def score(
        self,
        holdout: str,
        predictions: Mapping[Any, Any],
        metric: str = "accuracy",
        key: str | None = None,
    ) -> Score:
        """Score predictions such as {"17": 1}, one for every id; once for each idempotency key."""
        from quiltwork.holdout.prediction_tables import predictions_by_id

        body = {"predictions": predictions_by_id(predictions, "predictions"), "metric": metric}
        key = key or secrets.token_hex(16)
        return self._call(Score, "POST", "holdouts", holdout, "questions", body=body, key=key)

    def choose(self, holdout: str, number: int) -> Holdout:
        """Choose the submission for the final ranking; it can be changed until the end."""
        return self._call(Holdout, "PUT", "holdouts", holdout, "choice", body={"number": number})

    def finish(self, holdout: str) -> FinalRanking:
        """End a competition: score the chosen submissions on held-back rows, return the ranking."""
        self._connection.request("POST", path("holdouts", holdout, "end"), retry=True)
        return self.ranking(holdout)

    def ranking(self, holdout: str) -> FinalRanking:
        """Return the final ranking, with the members who cannot be distinguished."""
        from quiltwork.holdout.final_ranking import ranking_from_body

        return ranking_from_body(
            self._connection.request("GET", path("holdouts", holdout, "ranking"))
        )

    def standings(self, holdout: str) -> list[Score]:
        """Return each member's best answers."""
        return self._scores(holdout, "standings")

    def scores(self, holdout: str) -> list[Score]:
        """Return the member's own answers in order; the owner gets everybody's."""
        return self._scores(holdout, "scores")

    def _scores(self, holdout: str, kind: str) -> list[Score]:
        document = self._connection.request("GET", path("holdouts", holdout, kind))
        return [from_document(Score, score) for score in document["items"]]

    def admit(self, kind: Literal["table", "holdout"], name: str, member: str) -> None:
        """Give a member access to a table or a holdout."""
        self._connection.request("PUT", path(f"{kind}s", name, "access", member), retry=True)

    def dismiss(self, kind: Literal["table", "holdout"], name: str, member: str) -> None:
        """Withdraw a member's access to a table or a holdout."""
        self._delete(f"{kind}s", name, "access", member)

    def log(self) -> Iterator[dict[str, Any]]:
        """Yield the entries of the audit log, oldest first."""
        return self._connection.pages("/v1/log")

    def verify(self) -> Verification:
        """Let the curator verify its hash chain and every total."""
        return self._call(Verification, "POST", "log", "verification")

    def _call(
        self,
        kind: type[Kind],
        method: str,
        *parts: str,
        body: Any = None,
        key: str | None = None,
        retry: bool = True,
    ) -> Kind:
        document = self._connection.request(method, path(*parts), body, key=key, retry=retry)
        return from_document(kind, document)

    def _list(self, kind: type[Kind], *parts: str) -> Iterator[Kind]:
        return (from_document(kind, item) for item in self._connection.pages(path(*parts)))

    def _delete(self, *parts: str) -> None:
        self._connection.request("DELETE", path(*parts), retry=True)

    def _upload(self, method: str, target: str, file: str | Path) -> dict[str, Any]:
        kind = _MEDIA_TYPES.get(Path(file).suffix, "text/csv")
        return dict(
            self._connection.request(method, target, files.read_bytes(file), media_type=kind)
        )


def _number(value: Number, name: str) -> str:
    return str(positive_fraction(value, name))


def _document(query: Query | Mapping[str, Any]) -> dict[str, Any]:
    return to_document(query) if isinstance(query, Query) else dict(query)
