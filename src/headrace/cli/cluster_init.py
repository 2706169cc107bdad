"""`headrace cluster init`: the birth of a cluster, with its first users."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO
from uuid import uuid4

import click

from headrace.cli.options import json_option
from headrace.cli.render import print_json
from headrace.cli.scram_argument import ScramUser, parse_scram
from headrace.client.errors import ClientFailure
from headrace.config.broker import BrokerConfig
from headrace.config.secret import Secret
from headrace.controller.security_operations import ScramUpsertion
from headrace.core.ids import BrokerId
from headrace.security.scram_credential import DEFAULT_SALT_BYTES, salted_password

LONGEST_PASSWORD = 4096


@click.command()
@click.option(
    "--config",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="The server.properties of one of the brokers; none of them has run yet.",
)
@click.option(
    "--add-scram",
    "specs",
    multiple=True,
    metavar="SPEC",
    help="A user: SCRAM-SHA-512=[name=admin], with iterations=N or password=... in it. May be repeated.",
)
@click.option(
    "--password-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Passwords, a line for each user that has none in its SPEC.",
)
@click.option("--password-stdin", is_flag=True, help="The same from standard input.")
@json_option
def init(
    config: str, specs: tuple[str, ...], password_file: Path | None, password_stdin: bool, as_json: bool
) -> None:
    """Begin a cluster, before its first broker starts.

    A cluster whose listeners all want a password needs a user from the beginning: the administrator, and that
    of the brokers if they use SCRAM among themselves. Both belong into super.users. Leave the password out of
    SPEC, and it is asked for: every user of the machine can see what stands on a command line.
    """
    from headrace.config.properties_file import read_properties

    parsed = BrokerConfig.parse(read_properties(config))
    users = [parse_scram(spec) for spec in specs]
    if any(user.password is not None for user in users):
        click.echo("warning: other users of this machine can see a password on a command line", err=True)
    if password_stdin and password_file is not None:
        raise click.UsageError("give --password-file or --password-stdin, not both")
    given = list(_with_passwords(users, password_file, password_stdin))
    cluster_id = asyncio.run(_begin(parsed, [_upsertion(user, password) for user, password in given]))
    if as_json:
        print_json({"cluster_id": cluster_id, "users": sorted({user.name for user in users})})
        return
    named = f" with {', '.join(sorted({user.name for user in users}))}" if users else ""
    click.echo(f"cluster {cluster_id} begins{named}; start the brokers")


def _with_passwords(
    users: Sequence[ScramUser], file: Path | None, from_stdin: bool
) -> Iterator[tuple[ScramUser, Secret]]:
    with contextlib.ExitStack() as stack:
        lines = stack.enter_context(file.open(encoding="utf-8")) if file is not None else sys.stdin
        is_asked = file is None and not from_stdin
        for user in users:
            password = user.password
            if password is None:
                password = _asked(user) if is_asked else _of_line(lines)
            yield user, _checked(user, password)


def _of_line(lines: TextIO) -> Secret:
    """Its end does not belong to it."""
    return Secret(lines.readline(LONGEST_PASSWORD + 2).rstrip("\r\n"))


def _checked(user: ScramUser, password: Secret) -> Secret:
    if not password or len(password.reveal()) > LONGEST_PASSWORD:
        raise ClientFailure(
            f"there is no password for {user.name}, or it is too long",
            f"give one line of at most {LONGEST_PASSWORD} characters for each user",
        )
    return password


def _asked(user: ScramUser) -> Secret:
    text: str = click.prompt(
        f"password of {user.name} ({user.mechanism.value})",
        hide_input=True,
        confirmation_prompt=True,
        err=True,
    )
    return Secret(text)


def _upsertion(user: ScramUser, password: Secret) -> ScramUpsertion:
    salt = secrets.token_bytes(DEFAULT_SALT_BYTES)
    salted = salted_password(user.mechanism, password.reveal(), salt, user.iterations)
    return ScramUpsertion(user.name, user.mechanism.wire_type, user.iterations, salt, salted)


async def _begin(config: BrokerConfig, users: Sequence[ScramUpsertion]) -> str:
    from headrace.broker.cluster.birth import begin_cluster, begin_standalone
    from headrace.broker.process.main import coordination_of
    from headrace.log.checkpoints import encode_uuid

    now_ms = time.time_ns() // 1_000_000
    coordination = coordination_of(config)
    if coordination is None:
        return await begin_standalone(config, users, now_ms=now_ms)
    await coordination.start()
    try:
        return await begin_cluster(
            coordination,
            users,
            cluster_id=encode_uuid(uuid4()),
            broker_id=BrokerId(config.broker_id),
            now_ms=now_ms,
        )
    finally:
        await coordination.close()
