"""`headrace apply`: a cluster becomes what a file says."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final, NamedTuple

import click

from headrace.cli.apply_plan import print_plan, question
from headrace.cli.completions import complete_topics
from headrace.cli.lazy_group import FAILED
from headrace.cli.options import bootstrap_option, bundled, output_option, with_cluster
from headrace.cli.progress import ProgressLine
from headrace.cli.render import visible
from headrace.cli.service_options import ServiceAddresses, service_options
from headrace.cli.user import warn_of_plaintext
from headrace.cli.values import byte_rate
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.config.secret import Secret
from headrace.desired.asking import ask_present, ask_uses
from headrace.desired.carrying_out import carry_out
from headrace.desired.changes import UserChange
from headrace.desired.document import Document
from headrace.desired.link_reading import with_source_configs
from headrace.desired.passwords import read_passwords
from headrace.desired.plan import Plan, plan
from headrace.desired.present import Use
from headrace.desired.reading import read_document
from headrace.desired.schema_files import with_schema_files
from headrace.desired.services import Services, service_objections, with_services
from headrace.desired.wire import WireAdministration, objections
from headrace.desired.yaml_tree import MOST_BYTES, DocumentError

DIFFERS: Final = 2
AGAIN: Final = "what was done stays; run the same command again for the rest"


class _Words(NamedTuple):
    """What the command line says about deleting, passwords and questions."""

    check: bool
    dry_run: bool
    yes: bool
    prune: bool
    yes_delete: tuple[str, ...]
    set_password: tuple[str, ...]
    throttle: int | None


_word_options = bundled(
    "words",
    _Words,
    _Words._fields,
    (
        click.option("--check", is_flag=True, help="Change nothing; exit with 2 if the cluster differs."),
        click.option("--dry-run", "--plan", "dry_run", is_flag=True, help="Only show what would change."),
        click.option("-y", "--yes", is_flag=True, help="Do not ask."),
        click.option(
            "--prune",
            is_flag=True,
            help="Delete what the file owns and does not name, if it also says `prune: true`.",
        ),
        click.option(
            "--yes-delete",
            multiple=True,
            metavar="TOPIC",
            shell_complete=complete_topics,
            help="Delete this topic although it has records or readers; may be repeated.",
        ),
        click.option(
            "--set-password",
            multiple=True,
            metavar="USER",
            help="Set the password of a user that is there already; may be repeated.",
        ),
        click.option(
            "--throttle",
            callback=byte_rate,
            metavar="BYTES/s",
            help="How fast each broker may copy replicas that move, such as 50MB.",
        ),
    ),
)


@click.command()
@click.option(
    "-f",
    "--file",
    "source",
    required=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="What the cluster shall have; - for standard input.",
)
@_word_options
@service_options
@bootstrap_option
@output_option
def apply(source: str, words: _Words, addresses: ServiceAddresses, bootstrap: str, as_json: bool) -> int:
    """Make a cluster what a file says: its topics, links, users, ACLs, quotas, schemas and connectors.

    \b
    headrace export > cluster.yaml                what there is, as a file
    headrace apply -f cluster.yaml                the plan, then a question
    headrace apply -f cluster.yaml --yes          without the question
    headrace apply -f cluster.yaml --check        exit with 2 if the cluster differs

    Schemas need --registry, connectors --connect. Only what the file owns is touched, and nothing is deleted
    without `prune: true` in the file and --prune.
    If it is interrupted, run it again.
    """
    if words.check and words.dry_run:
        raise click.UsageError("--check and --dry-run exclude each other")
    document = _read(source)
    if words.prune and not document.prune:
        raise ClientFailure(
            "--prune needs `prune: true` in the file as well", "nothing is deleted by one word alone"
        )
    if words.check:
        # The file says that the rest shall go, and a check deletes nothing: one word is enough to compare.
        words = words._replace(prune=document.prune)
        services = addresses.services
        planned, uses = with_cluster(bootstrap, lambda cluster: _plan(cluster, document, words, services))
        print_plan(planned, uses, as_json=as_json, done=None)
        return 0 if planned.changes_nothing else DIFFERS
    return _decide(document, words, addresses.services, source, bootstrap, as_json)


def _read(source: str) -> Document:
    name = "standard input" if source == "-" else Path(source).name
    with click.open_file(source, "rb") as file:
        content: bytes = file.read(MOST_BYTES + 1)
    try:
        directory = Path() if source == "-" else Path(source).parent
        return with_source_configs(with_schema_files(read_document(content), directory), directory)
    except DocumentError as error:
        raise ClientFailure(f"{name}, {error}", error.hint) from None
    except (ValueError, OSError) as error:
        raise ClientFailure(f"{name}: {error}") from None


async def _plan(
    cluster: Cluster, document: Document, words: _Words, services: Services
) -> tuple[Plan, dict[str, Use]]:
    services.require(document.owns)
    present = await ask_present(cluster, document.owns)
    present = await with_services(present, services, document.owns, document)
    found = plan(document, present, prune=words.prune, new_passwords=words.set_password)
    if words.check:
        return found, {}
    return found, await ask_uses(cluster, found.deleted_topics)


def _decide(
    document: Document, words: _Words, services: Services, source: str, bootstrap: str, as_json: bool
) -> int:
    """Show the plan, ask, and carry it out."""
    planned, uses = with_cluster(bootstrap, lambda cluster: _plan(cluster, document, words, services))
    directory = Path() if source == "-" else Path(source).parent
    passwords, lacking = read_passwords(planned, os.environ, directory)
    refused = [*planned.refused, *lacking]
    if planned.changes:
        refused += with_cluster(bootstrap, lambda cluster: _objections(cluster, services, planned))
    can_ask = source != "-" and sys.stdin.isatty() and not words.dry_run and not as_json
    held = {name: use for name, use in uses.items() if use and name not in words.yes_delete}
    if words.yes or not can_ask:
        refused += [f"topic {name} {use}: `--yes-delete {name}` deletes it" for name, use in held.items()]
    planned = planned.refusing(refused)
    if planned.refused or words.dry_run or planned.changes_nothing:
        print_plan(planned, uses, as_json=as_json, done=False)
        return FAILED if planned.refused else 0
    if not words.yes and not can_ask:
        print_plan(planned, uses, as_json=as_json, done=False)
        raise ClientFailure("nothing was changed: there is nobody to ask", "say --yes to apply this plan")
    if not as_json:
        print_plan(planned, uses, as_json=False, done=None)
    if not words.yes:
        _ask(planned, held)
        again, _ = with_cluster(bootstrap, lambda cluster: _plan(cluster, document, words, services))
        if again != planned:
            raise ClientFailure(
                "nothing was changed: the cluster has changed since the plan was made", "look at the new plan"
            )
    _carry_out(planned, passwords, words, services, bootstrap)
    if as_json:
        print_plan(planned, uses, as_json=True, done=True)
    else:
        click.echo("applied", err=True)
    return 0


async def _objections(cluster: Cluster, services: Services, planned: Plan) -> list[str]:
    return [*await objections(cluster, planned), *await service_objections(services, planned)]


def _ask(planned: Plan, held: dict[str, Use]) -> None:
    for name, use in held.items():
        typed = click.prompt(
            f"topic {name} {use}. Type its name to delete it", err=True, default="", show_default=False
        )
        if typed != name:
            raise ClientFailure("nothing was changed: this is not the topic's name")
    click.confirm(question(planned), abort=True, err=True)


def _carry_out(
    planned: Plan, passwords: dict[str, Secret], words: _Words, services: Services, bootstrap: str
) -> None:
    if any(isinstance(each, UserChange) and each.password for each in planned.changes):
        warn_of_plaintext()

    async def operation(cluster: Cluster) -> None:
        with ProgressLine() as line:
            administration = WireAdministration(
                cluster, throttle=words.throttle, tell=line.tell, services=services
            )
            await carry_out(planned, administration, passwords, lambda said: line.tell(visible(said)))

    try:
        with_cluster(bootstrap, operation)
    except ClientFailure as error:
        error.hint = f"{error.hint}; {AGAIN}" if error.hint else AGAIN
        raise
    except KeyboardInterrupt:
        click.echo(AGAIN, err=True)
        raise
