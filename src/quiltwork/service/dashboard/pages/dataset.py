"""One dataset: what is left, what leaked, what was released, who may use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from quiltwork.service.dashboard.charts import answer_chart, answer_of, leakage_chart, over_time
from quiltwork.service.dashboard.pages.datasets import summary
from quiltwork.service.dashboard.web import Go, Shown, Visit, done
from quiltwork.service.problems import Problem

_WORDS = {
    "MarkovChain": ("a Markov chain", "Markov chains"),
    "ChainBox": ("a box of chains", "boxes of chains"),
    "CyclicChain": ("a chain with a daily rhythm", "chains with a daily rhythm"),
}
_SHOWN = 2
"""How many of the latest answers are drawn on the page of a dataset."""


def dataset(visit: Visit, refused: Problem | None = None) -> Shown:
    """Show everything about one dataset that the caller may see."""
    name = {"dataset": visit.path["dataset"]}
    found = visit.ask("show_dataset", name)
    released = visit.everything("list_releases", name) if visit.may("release.read") else []
    answers = [answer_of(one.document) for one in released]
    latest = list(zip(released, answers, strict=True))[: -_SHOWN - 1 : -1]
    values = {
        "heading": found.name,
        "one": found,
        "summary": found.text or summary(found),
        "facts": _facts(found),
        "leakage": _leakage(visit, found),
        "latest": [(one, answer_chart(answer)) for one, answer in latest],
        "compared": over_time(answers),
        "releases": released[::-1],
        "debits": visit.everything("show_ledger", name)[::-1] if visit.may("ledger.read") else [],
        "refused": refused,
        "mine": found.owner == visit.caller.member,
    }
    return Shown("dataset.html", values, refused.status if refused else 200)


def _facts(found: Any) -> dict[str, str]:
    if found.kind == "counts":
        cells = " · ".join(f"{name} ({len(of)})" for name, of in found.columns.items())
        return {"protects": "every person", "columns": cells}
    secret = "every moment" if found.episode == 1 else f"every {found.episode} moments in a row"
    return {
        "protects": secret,
        "series": f"{found.length:,} moments, {len(found.states)} states",
        "against": _believed(found.beliefs),
    }


def _believed(beliefs: list[str]) -> str:
    """Name what an adversary believes in words.

    >>> _believed(["MarkovChain(2 states)"]), _believed(["ChainBox(2)", "ChainBox(3)"])
    ('a Markov chain', '2 boxes of chains')
    """
    kinds = Counter(one.partition("(")[0] for one in beliefs)
    words = {kind: _WORDS.get(kind, (f"a {kind}", f"of {kind}")) for kind in kinds}
    return ", ".join(words[k][0] if n == 1 else f"{n} {words[k][1]}" for k, n in kinds.items())


def _leakage(visit: Visit, found: Any) -> Any:
    if found.kind != "series" or not found.releases:
        return None
    runs = visit.ask("show_leakage", {"dataset": found.name}).runs
    return leakage_chart(runs, found.spent, found.budget) if runs else None


def add(visit: Visit) -> Shown | Go:
    """Add the rows of a file."""
    return _done(visit, "added", lambda: visit.send("add_rows", _name(visit), "rows"))


def share(visit: Visit) -> Shown | Go:
    """Give somebody access, an analyst with a share of the budget."""
    form = visit.form
    limits = {
        part: form[part].strip() for part in ("cap", "reserved") if form.get(part, "").strip()
    }
    path = {**_name(visit), "member": form.get("member", "").strip()}
    return _done(visit, "shared", lambda: visit.ask("share_dataset", path, limits))


def unshare(visit: Visit) -> Shown | Go:
    """Take access back."""
    return _done(visit, "shared", lambda: visit.ask("unshare_dataset", visit.path))


def retire(visit: Visit) -> Shown | Go:
    """Release nothing more."""
    reason = visit.form.get("reason", "").strip() or "no longer used"
    ask = {"reason": reason}
    return _done(visit, "retired", lambda: visit.ask("retire_dataset", _name(visit), ask))


def delete(visit: Visit) -> Shown | Go:
    """Delete all rows, if the name was typed."""
    if visit.form.get("confirm", "").strip() != visit.path["dataset"]:
        return dataset(visit, Problem(422, "invalid-input", "Type the dataset's name to delete."))
    return _done(visit, "deleted", lambda: visit.ask("delete_rows", _name(visit)))


def release(visit: Visit) -> Shown:
    """Show one answer with its error bars, and in words."""
    found = visit.ask("show_release", visit.path)
    values = {
        "heading": f"{found.kind.replace('_', ' ').capitalize()} of {found.dataset}",
        "one": found,
        "chart": answer_chart(answer_of(found.document)),
        "rows": list(zip(found.cells, found.values, found.intervals or [], strict=False)),
    }
    return Shown("release.html", values)


def _name(visit: Visit) -> dict[str, str]:
    return {"dataset": visit.path["dataset"]}


def _done(visit: Visit, told: str, work: Callable[[], Any]) -> Shown | Go:
    address = f"/datasets/{visit.path['dataset']}"
    return done(work, address, told, lambda refused: dataset(visit, refused))
