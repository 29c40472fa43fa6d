"""`quiltwork completion`: the script that lets a shell complete commands and options."""

from __future__ import annotations

import click

from quiltwork import files
from quiltwork.cli.command import command
from quiltwork.cli.output import emit

INSTALL = {
    "bash": 'eval "$(quiltwork completion bash)"   # add this line to ~/.bashrc',
    "zsh": 'eval "$(quiltwork completion zsh)"   # add this line to ~/.zshrc, after compinit',
    "fish": "quiltwork completion fish > ~/.config/fish/completions/quiltwork.fish",
}


@command(
    example="""
    eval "$(quiltwork completion bash)"            # now, or in ~/.bashrc for good
    eval "$(quiltwork completion zsh)"             # in ~/.zshrc, after compinit
    quiltwork completion fish > ~/.config/fish/completions/quiltwork.fish
    """
)
@click.argument("shell", type=click.Choice(list(INSTALL)))
def completion(shell: str) -> None:
    """Print the script that completes commands in a shell."""
    from click.shell_completion import get_completion_class

    from quiltwork.cli.app import app
    from quiltwork.cli.boundary import COMPLETION_VARIABLE

    complete = get_completion_class(shell)
    if complete is None:
        raise click.UsageError(f"No completion for {shell}")
    parts = complete(app, {}, "quiltwork", COMPLETION_VARIABLE)
    # Not .source(): for bash that starts a bash process only to look at its version.
    script = parts.source_template % parts.source_vars()
    document = files.dump("completion", 1, {"shell": shell, "script": script})
    emit(document, [f"# To install: {INSTALL[shell]}", script])
