"""What the steps of a migration share: the file, both clusters, and the sentence at the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from headrace.cli.options import with_cluster
from headrace.client.cluster import Cluster
from headrace.client.security import PLAINTEXT, ClientSecurity
from headrace.migration import ends, state_file
from headrace.migration.ends import Both
from headrace.migration.order import next_step
from headrace.migration.state import Migration

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

Save = Callable[[], None]

undo_option = click.option("--undo", is_flag=True, help="Take back what this step has done.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def state_option(command: F) -> F:
    return click.option(
        "-f",
        "--state",
        "path",
        type=click.Path(dir_okay=False, path_type=Path),
        default="migration.json",
        show_default=True,
        metavar="FILE",
        help="Where the migration keeps what it has done.",
    )(command)


@contextmanager
def held(path: Path) -> Iterator[tuple[Migration, Save]]:
    """The migration, for this command alone, and how it is saved."""
    migration = state_file.read(path)  # that there is none is said before a lock is made
    with state_file.held(path):
        migration = state_file.read(path)
        yield migration, lambda: state_file.write(path, migration)


def source_security(path: str | None) -> ClientSecurity:
    return PLAINTEXT if path is None else ClientSecurity.read(path)


def target_of(bootstrap: str, migration: Migration) -> str:
    """What was given; else what the plan was made with."""
    context = click.get_current_context()
    if context.get_parameter_source("bootstrap") is ParameterSource.DEFAULT:
        return migration.target.bootstrap
    return bootstrap


def with_both(bootstrap: str, migration: Migration, operation: Callable[[Both], Awaitable[T]]) -> T:
    """Run it with a client for each end, once both are known to be those of the plan."""
    how = source_security(migration.source.config)

    async def run(target: Cluster) -> T:
        async with Cluster(migration.source.bootstrap, client_id="headrace-migrate", security=how) as source:
            both = Both(source, target)
            await ends.check_clusters(both, migration)
            return await operation(both)

    return with_cluster(target_of(bootstrap, migration), run)


def say_next(migration: Migration) -> None:
    click.echo(f"next: {next_step(migration)}")
