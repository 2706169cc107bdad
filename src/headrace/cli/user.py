"""`headrace user`: users that log in with a password, by SCRAM."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import click

from headrace.cli.options import (
    bootstrap_of,
    bootstrap_option,
    bundled,
    output_option,
    security,
    with_cluster,
)
from headrace.cli.render import print_json, print_table
from headrace.client import acls, users
from headrace.client.client_files import Access, ClientFiles, trusted_authority
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, Refused
from headrace.config.secret import Secret
from headrace.security.acl_filter import AclFilter
from headrace.security.scram_credential import (
    DEFAULT_ITERATIONS,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramMechanism,
)

_LONGEST_PASSWORD = 4096
_NAMES = [each.value for each in ScramMechanism]
_mechanism_option = click.option("--mechanism", type=click.Choice(_NAMES, case_sensitive=False))


class _Chosen(NamedTuple):
    """How a password is set, and which files tell of it."""

    mechanism: str | None
    iterations: int
    password_stdin: bool
    client_config: Path | None
    client_bootstrap: str | None

    def password(self) -> Secret:
        return _given_password() if self.password_stdin else users.new_password()


_password_options = bundled(
    "chosen",
    _Chosen,
    _Chosen._fields,
    (
        _mechanism_option,
        click.option(
            "--iterations",
            type=click.IntRange(MIN_ITERATIONS, MAX_ITERATIONS),
            default=DEFAULT_ITERATIONS,
            show_default=True,
        ),
        click.option(
            "--password-stdin",
            is_flag=True,
            help="Take the password from standard input instead of making one.",
        ),
        click.option(
            "--client-config",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Write client properties here, and beside it those for librdkafka and Spark.",
        ),
        click.option(
            "--client-bootstrap",
            metavar="HOST:PORT",
            help="For those files, where the users' listener is not the one of this command.",
        ),
    ),
)


@click.group()
def user() -> None:
    """Create, list and delete users; change their passwords."""


@user.command()
@click.argument("name")
@_password_options
@bootstrap_option
@output_option
def create(name: str, chosen: _Chosen, bootstrap: str, as_json: bool) -> None:
    """Create the user NAME, with a new password that is printed this once.

    The user may do nothing yet: `headrace acl grant NAME produce TOPIC` is the next step.
    """
    mechanism = ScramMechanism(chosen.mechanism or ScramMechanism.SHA_512.value)
    password = chosen.password()
    access = _access(name, mechanism, password, bootstrap, chosen)

    async def operation(cluster: Cluster) -> None:
        if await users.find_user(cluster, name) is not None:
            raise ClientFailure(
                f"user {name} exists already", f"`headrace user passwd {name}` changes the password"
            )
        await users.set_password(cluster, name, mechanism, password, iterations=chosen.iterations)

    warn_of_plaintext()
    with_cluster(bootstrap, operation)
    files = _written(chosen.client_config, access)
    _print_password("created", name, [mechanism], None if chosen.password_stdin else password, files, as_json)


@user.command("list")
@bootstrap_option
@output_option
def list_(bootstrap: str, as_json: bool) -> None:
    """List users. Those that come with certificates or tokens are not among them."""
    found = with_cluster(bootstrap, users.list_users)
    if as_json:
        print_json(
            [
                {
                    "name": each.name,
                    "mechanisms": {key.value: count for key, count in each.iterations.items()},
                }
                for each in found
            ]
        )
        return
    print_table(
        ("NAME", "MECHANISMS", "ITERATIONS"),
        [
            (each.name, [key.value for key in each.iterations], list(each.iterations.values()))
            for each in found
        ],
        empty="no users yet: `headrace user create NAME` makes one",
    )


@user.command()
@click.argument("name")
@_password_options
@bootstrap_option
@output_option
def passwd(name: str, chosen: _Chosen, bootstrap: str, as_json: bool) -> None:
    """Change the password of NAME, for each mechanism that the user has, or for --mechanism alone.

    Connections that are open stay open. New ones need the new password at once.
    """
    password = chosen.password()

    async def operation(cluster: Cluster) -> list[ScramMechanism]:
        known = await users.find_user(cluster, name)
        if known is None:
            raise _unknown(name)
        mechanisms = [ScramMechanism(chosen.mechanism)] if chosen.mechanism else list(known.iterations)
        for each in mechanisms:
            await users.set_password(cluster, name, each, password, iterations=chosen.iterations)
        return mechanisms

    # What is wrong with the files is said before anything changes.
    _access(name, ScramMechanism.SHA_512, password, bootstrap, chosen)
    warn_of_plaintext()
    changed = with_cluster(bootstrap, operation)
    access = _access(name, changed[-1], password, bootstrap, chosen)
    files = _written(chosen.client_config, access)
    _print_password("changed", name, changed, None if chosen.password_stdin else password, files, as_json)


@user.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--if-exists", is_flag=True, help="Be content if the user is not there.")
@_mechanism_option
@bootstrap_option
@output_option
def delete(
    names: tuple[str, ...], if_exists: bool, mechanism: str | None, bootstrap: str, as_json: bool
) -> None:
    """Delete users, or only their password for --mechanism. Their rules stay, and are told of.

    Connections that are open go on until they end, or until connections.max.reauth.ms. To stop a user at
    once, remove the rules.
    """

    async def operation(cluster: Cluster) -> dict[str, int]:
        gone: dict[str, int] = {}
        for name in names:
            known = await users.find_user(cluster, name)
            chosen = [] if known is None else list(known.iterations)
            if mechanism:
                chosen = [each for each in chosen if each.value == mechanism]
            if not chosen and not if_exists:
                raise _unknown(name)
            if chosen:
                await users.delete_credentials(cluster, name, chosen)
                gone[name] = await _rules_of(cluster, f"User:{name}")
        return gone

    deleted = with_cluster(bootstrap, operation)
    if as_json:
        print_json([{"name": name, "rules_left": rules} for name, rules in deleted.items()])
        return
    for name, rules in deleted.items():
        click.echo(f"deleted {name}")
        if rules:
            click.echo(
                f"note: rules left for User:{name}: {rules}; `headrace acl remove --principal {name}`",
                err=True,
            )


async def _rules_of(cluster: Cluster, principal: str) -> int:
    try:
        return len(await acls.describe_acls(cluster, AclFilter(principal=principal)))
    except Refused:
        return 0  # without an authorizer there are no rules


def _unknown(name: str) -> ClientFailure:
    return ClientFailure(f"user {name} does not exist", "`headrace user list` shows who does")


def _given_password() -> Secret:
    """Of one line; its end does not belong to it."""
    text = sys.stdin.readline(_LONGEST_PASSWORD + 2).rstrip("\r\n")
    if not text or len(text) > _LONGEST_PASSWORD:
        raise ClientFailure(
            "no password came from standard input" if not text else "this password is too long",
            f"give one line of at most {_LONGEST_PASSWORD} characters",
        )
    return Secret(text)


def _access(
    name: str, mechanism: ScramMechanism, password: Secret, bootstrap: str, chosen: _Chosen
) -> Access | None:
    """What the client files say; None if nobody wants them."""
    if chosen.client_config is None:
        return None
    own = security()
    if own.credentials is None and chosen.client_bootstrap is None:
        raise ClientFailure(
            "this command does not come through a listener for users, so the files lack an address",
            "name the SASL listener with --client-bootstrap HOST:PORT",
        )
    protocol = "SASL_SSL" if own.protocol.endswith("SSL") else "SASL_PLAINTEXT"
    address = chosen.client_bootstrap or bootstrap_of(bootstrap)
    return Access(address, protocol, mechanism.value, name, password, trusted_authority(own))


def _written(path: Path | None, access: Access | None) -> ClientFiles | None:
    if path is None or access is None:
        return None
    files = ClientFiles.beside(path)
    files.write(files.with_authority(access))
    return files


def warn_of_plaintext() -> None:
    if not security().protocol.endswith("SSL"):
        click.echo(
            "warning: the connection is not encrypted; whoever listens can log in as the user", err=True
        )


def _print_password(
    what: str,
    name: str,
    mechanisms: list[ScramMechanism],
    password: Secret | None,
    files: ClientFiles | None,
    as_json: bool,
) -> None:
    """The one place where a password is printed: nobody can ask for it again."""
    names = [each.value for each in mechanisms]
    paths = {} if files is None else {kind: str(path) for kind, path in files._asdict().items()}
    if as_json:
        document: dict[str, object] = {"name": name, "mechanisms": names, "files": paths}
        if password is not None:
            document["password"] = password.reveal()
        print_json(document)
        return
    click.echo(f"{what} {name} mechanism={','.join(names)}")
    if password is not None:
        click.echo(f"password {password.reveal()}")
        click.echo("note: it is not shown again", err=True)
    for kind, path in paths.items():
        click.echo(f"{kind} {path}")
