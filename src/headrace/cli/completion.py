"""`headrace completion SHELL`: the script that a shell loads to complete our commands."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, get_completion_class


class _AnyBash(BashComplete):
    """Click would start bash to ask for its version; the script may be for another machine."""

    @staticmethod
    def _check_version() -> None:
        return


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash:  eval "$(headrace completion bash)"      in ~/.bashrc
    zsh:   eval "$(headrace completion zsh)"       in ~/.zshrc
    fish:  headrace completion fish > ~/.config/fish/completions/headrace.fish
    """
    kind = _AnyBash if shell == "bash" else get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(kind(context.find_root().command, {}, "headrace", "_HEADRACE_COMPLETE").source())
