"""`headrace up`: a local broker until Ctrl-C."""

from __future__ import annotations

import click

from headrace.cli.broker import serve
from headrace.client.errors import ClientFailure


@click.command()
@click.option("--dir", "directory", type=click.Path(file_okay=False), help="Keep the data here.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=9092, show_default=True, help="0 picks a free one."
)
@click.option("--brokers", type=click.IntRange(1), default=1, show_default=True)
def up(directory: str | None, port: int, brokers: int) -> int:
    """Run a local broker until Ctrl-C.

    When it serves, it prints one line on standard output: `ready bootstrap=HOST:PORT`.
    Without --dir the data is in a temporary directory that is removed at the end.
    """
    if brokers > 1:
        raise ClientFailure(
            f"{brokers} brokers were asked for, but clusters are not there yet",
            "leave --brokers out: one runs",
        )
    if directory is not None:
        return serve(_properties(directory, port))
    import tempfile

    with tempfile.TemporaryDirectory(prefix="headrace-", ignore_cleanup_errors=True) as temporary:
        click.echo(f"data is in {temporary}, which is removed at exit; --dir keeps it", err=True)
        return serve(_properties(temporary, port))


def _properties(directory: str, port: int) -> dict[str, str]:
    return {
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": directory,
    }
