"""`quiltwork joint`: verifies agreed boxes together with other providers, without showing rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from quiltwork.cli.command import command, option, option_group, split_list
from quiltwork.cli.output import emit
from quiltwork.cli.table_options import (
    TableFiles,
    constraint_from_options,
    declarations,
    m_option,
    read_table,
)
from quiltwork.files import dump, read_bytes

if TYPE_CHECKING:
    from quiltwork.tables.constraints import Constraint


@command(
    example="""
    quiltwork joint north.csv --boxes boxes.csv --quasi age,zip --sensitive disease --k 5 --l 2 \\
        --as north --providers north,east,south --salt salt.txt --folder mine
    """
)
def joint(
    source: TableFiles = option_group(TableFiles),
    constraint: Constraint = option_group(constraint_from_options),
    m: int = m_option,
    boxes: str = option("The agreed boxes, or a published table in them.", "FILE"),
    me: str = option("Your own name among the providers.", "NAME", names="--as"),
    providers: str = option("All providers, including you, separated by commas.", "NAMES"),
    salt: str = option("A secret that all providers share.", "FILE"),
    folder: str = option("The folder of your files and of those from others.", "FOLDER"),
    left_out: int = option("The most of your rows that may be in no box.", default=0),
    declared: dict[str, Any] = option_group(declarations),
) -> None:
    """Verify boxes with others; no row leaves you.

    Run it again whenever files have arrived, until it prints the verdict. It writes
    NAME-OTHER.share, each for one other provider alone, then NAME.counts and perhaps NAME.rare for
    all others, and prints to whom each goes; put theirs into your folder. k and distinct l are
    verified. All providers must follow the protocol. Exit code 1: not shown to be private; waiting
    for files is exit code 0.
    """
    from quiltwork.tables.providers.joint_verification import Agreement, read_boxes, take_step

    if len(source.files) > 1 or source.provider is not None or source.subject is not None:
        raise click.UsageError("give only your own file, without --provider and --subject")
    agreed = Agreement(
        tuple(split_list(providers)),
        read_boxes(boxes, split_list(source.quasi), split_list(source.text)),
        constraint,
        m,
        read_bytes(salt).strip(),
    )
    step = take_step(agreed, me, read_table(source, **declared), folder, left_out)
    lines = []
    for path in step.written:
        other = path.stem.removeprefix(f"{me}-")
        recipient = f"{other} alone" if path.suffix == ".share" else "all others"
        lines.append(f"wrote {path}: give it to {recipient}")
    if step.missing:
        lines.append(f"Waiting for {', '.join(step.missing)}. Run it again once they have arrived.")
    verdict = step.verdict
    if verdict is not None:
        lines.append(verdict.explain())
    body = {
        "written": [str(path) for path in step.written],
        "missing": list(step.missing),
        "found": None if verdict is None else verdict.body(),
    }
    emit(dump("joint-step", 1, body), lines)
    if verdict is not None and not verdict.private:
        click.get_current_context().exit(1)
