"""`headrace cert`: certificates for brokers and clients, where no authority gives them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from headrace.cli.render import print_json, print_table
from headrace.client.certificates import DAYS, Authority, Made, show
from headrace.client.errors import ClientFailure

_DIRECTORY = click.option(
    "--dir",
    "directory",
    default="certs",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the authority and its certificates are.",
)
_DAYS = click.option("--days", default=DAYS, show_default=True, type=click.IntRange(1, 3650))


@click.group()
def cert() -> None:
    """Make, renew and show certificates."""


@cert.command()
@click.argument("name")
@click.option("--host", "hosts", multiple=True, help="A name or address of the broker. May be repeated.")
@_DIRECTORY
@_DAYS
def create(name: str, hosts: tuple[str, ...], directory: Path, days: int) -> None:
    """Make a certificate for the broker or client NAME.

    The first call makes the authority as well. A broker needs --host for each name that clients dial. A
    client needs none; its principal is User:CN=NAME, unless ssl.principal.mapping.rules say otherwise.
    """
    _check_name(name)
    authority = Authority.at(directory)
    _say(authority, authority.issue(name, hosts, days=days))


@cert.command()
@click.argument("name")
@_DIRECTORY
@_DAYS
def renew(name: str, directory: Path, days: int) -> None:
    """Make the certificate NAME anew, for the same hosts. Brokers take it up by themselves."""
    _check_name(name)
    (known, *_) = show(directory / f"{name}.pem")
    authority = Authority.at(directory)
    _say(authority, authority.issue(name, known.hosts, days=days, renew=True))


@cert.command("show")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
def show_command(files: tuple[Path, ...], output: str) -> None:
    """Show whom the certificates in FILES are for, and how long they are valid."""
    now = datetime.now(UTC)
    found = [each for path in files for each in show(path)]
    if output == "json":
        print_json(
            [
                {
                    "file": str(each.path),
                    "subject": each.subject,
                    "issuer": each.issuer,
                    "hosts": list(each.hosts),
                    "ends": each.ends.isoformat(),
                    "days_left": each.days_left(now),
                }
                for each in found
            ]
        )
        return
    print_table(
        ("FILE", "SUBJECT", "HOSTS", "ENDS", "DAYS LEFT"),
        [
            (
                str(each.path),
                each.subject,
                ", ".join(each.hosts) or "-",
                each.ends.strftime("%Y-%m-%d"),
                str(each.days_left(now)) if each.ends > now else "expired",
            )
            for each in found
        ],
    )


def _check_name(name: str) -> None:
    if (
        not name
        or "/" in name
        or name.startswith(".")
        or name == "ca"
        or name.endswith(("-key", "-keystore"))
    ):
        raise ClientFailure(f"{name!r} cannot be the name of a certificate's file", "use letters and digits")


def _say(authority: Authority, made: Made) -> None:
    click.echo(f"certificate  {made.certificate}")
    click.echo(f"key          {made.key}")
    click.echo(f"keystore     {made.keystore}")
    click.echo(f"trust        {authority.path}")
