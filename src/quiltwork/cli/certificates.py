"""`quiltwork holdout certify` and `verify`: signed statements of scores."""

from __future__ import annotations

import click

from quiltwork import files
from quiltwork.cli.command import command, option, output_option
from quiltwork.cli.output import check_targets, deliver, emit


@command(example="quiltwork holdout certify race --key key.pem -o certificate.json")
@click.argument("folder")
@option("--key FILE", "Ed25519 in PEM; made if not there.", required=True)
@output_option
def certify(folder: str, key: str, output: str | None) -> None:
    """Sign the best score of a leaderboard in FOLDER, or the last answer of a holdout."""
    from quiltwork.holdout.certificates import certify as sign

    check_targets(output)
    found = sign(folder, key)
    deliver(found.to_json(), found.explain().splitlines(), output=output)


@command(
    example="""
    quiltwork holdout verify certificate.json
    quiltwork holdout verify certificate.json --public-key 3b5d... --transcript board.jsonl
    """
)
@click.argument("file")
@option("--public-key HEX", "Of whom it must be.")
@option("--transcript FILE", "Must be whole, and have the line that is certified.")
def verify(file: str, public_key: str | None, transcript: str | None) -> None:
    """Check a certificate offline: its signature, and that of whom and about what it is."""
    from quiltwork.holdout.certificates import verify_certificate

    found = verify_certificate(files.contents(file), public_key, transcript)
    whose = "" if public_key else " Whose key it is, nothing here tells: compare it."
    emit(found.to_json(), [*found.explain().splitlines(), f"The signature fits.{whose}"])
