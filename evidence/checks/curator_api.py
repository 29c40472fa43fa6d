"""The whole API of a curator, fuzzed by schemathesis from its own description, as each role.

Requests that fit the description and requests that do not, about objects that are there and made-up
ones. No answer is a server's error, every answer is one that the description knows, what does not
fit is refused, and what fits is done or refused for a reason that no schema can tell (422).
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evidence.curators import Running, running, with_steps

NAME = "The curator's API"
CLAIM = "for every role and for nobody, no server error and no check of schemathesis fails"
EXAMPLES = 23
TEAM = {"pia": "provider", "anna": "analyst", "udo": "auditor"}


def run(progress: Callable[[int, int], None]) -> dict[str, int]:
    """Every operation as everybody."""
    return check(EXAMPLES, progress)


def check(
    examples: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
    members: tuple[str | None, ...] = (None, "olga", *TEAM),
    database: str | None = None,
) -> dict[str, int]:
    """So many examples of each operation, fitting and not, with real objects and made-up ones."""
    cases = 0
    for number, member in enumerate(members):
        with tempfile.TemporaryDirectory() as folder, running(Path(folder), database) as curator:
            _team(curator)
            cases += _fuzzed(curator, member, examples)
            log = (Path(folder) / "stderr").read_text()
            assert "Traceback" not in log, log[-2000:]
        progress(number + 1, len(members))
    return {"roles": len(members), "requests": cases, "violations": 0}


def _team(curator: Running) -> None:
    with_steps(curator)
    olga = curator.as_("olga")
    olga.register_counts("survey", {"sex": ["f", "m"]}, 10)
    rows = curator.folder / "survey.csv"
    rows.write_text("sex\nf\nm\nm\n")
    olga.add_rows("survey", rows)
    for member, role in TEAM.items():
        curator.join(member, role)
    for member in ("pia", "anna"):
        for dataset in ("steps", "survey"):
            olga.share(dataset, member)
    _with_objects(curator)
    curator.as_("anna").ask("survey", {"kind": "table", "by": ["sex"]}, 1, "first")


def _with_objects(curator: Running) -> None:
    """A table and a holdout that olga made and others may use."""
    olga = curator.as_("olga")
    olga.make_table("clinic", ["age"], "ill", k=2)
    columns = {"id_column": "id", "target": "y", "threshold": 0.1, "noise": 0.1, "budget": 1}
    for side in ("train", "holdout"):
        rows = "".join(f"{side}{n},{n % 2}\n" for n in range(20))
        (curator.folder / f"{side}.csv").write_text(f"id,y\n{rows}")
    olga.register_holdout(
        "board", curator.folder / "train.csv", curator.folder / "holdout.csv", **columns
    )
    for member in ("pia", "anna"):
        olga.admit("table", "clinic", member)
        olga.admit("holdout", "board", member)


def _fuzzed(curator: Running, member: str | None, examples: int) -> int:
    """Ask everything as one member; return how many requests were made."""
    import schemathesis
    from hypothesis import HealthCheck, given, settings
    from schemathesis.config import SchemathesisConfig
    from schemathesis.generation import GenerationMode

    refused = ["401", "403", "404", "409", "413", "422"]
    statuses = {
        "positive_data_acceptance": ["2xx", *refused],
        "negative_data_rejection": ["400", "405", "415", *refused],
    }
    config = SchemathesisConfig.from_dict(
        {"checks": {name: {"expected-statuses": some} for name, some in statuses.items()}}
    )
    schema = schemathesis.openapi.from_url(f"{curator.address}/openapi.json", config=config)
    headers = {}
    if member is not None:
        headers["Authorization"] = f"Bearer {curator.tokens[member]}"
    made = 0
    operations = [found.ok() for found in schema.get_all_operations()]
    operations.sort(key=lambda one: one.method == "delete" or "retirement" in one.path)
    for operation in operations:
        for mode in GenerationMode:
            for real in (True, False):
                objects = _objects(operation.path) if real else None
                strategy = operation.as_strategy(generation_mode=mode, path_parameters=objects)

                @settings(
                    max_examples=examples,
                    deadline=None,
                    database=None,
                    derandomize=True,
                    suppress_health_check=list(HealthCheck),
                )
                @given(case=strategy)
                def asked(case: Any) -> None:
                    nonlocal made
                    made += 1
                    case.call_and_validate(headers=headers)

                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    asked()
    return made


def _objects(path: str) -> dict[str, str] | None:
    """Real objects for the parameters of a path."""
    known = {
        "dataset": "survey" if "remap" in path or "{release}" in path else "steps",
        "member": "anna",
        "token": "0" * 16,
        "release": "1",
        "table": "clinic",
        "holdout": "board",
        "job": "0" * 24,
        "side": "train",
    }
    named = {name: value for name, value in known.items() if f"{{{name}}}" in path}
    return named or None
