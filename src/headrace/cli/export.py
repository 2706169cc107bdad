"""`headrace export`: what a cluster has, as the file that `headrace apply` reads."""

from __future__ import annotations

from typing import Final

import click

from headrace.cli.options import bootstrap_option, with_cluster
from headrace.cli.service_options import ServiceAddresses, service_options
from headrace.client import acls, many_links
from headrace.client.cluster import Cluster
from headrace.client.errors import Refused
from headrace.desired.asking import ask_present
from headrace.desired.ownership import EVERYTHING, Kind, Ownership
from headrace.desired.services import Services, with_services
from headrace.desired.writing import write_document
from headrace.protocol.error_codes import ErrorCode

_NAMES: Final = {
    Kind.TOPICS: "Topics: a name, or shop.* for all that begin with shop.",
    Kind.LINKS: "Links to topics of other clusters, by the names of the copies.",
    Kind.USERS: "Users, by name.",
    Kind.ACLS: "Rules, by the principal that they are for.",
    Kind.QUOTAS: "Quotas, by the name of the user, client id or address.",
    Kind.SCHEMAS: "Schemas, by subject; needs --registry.",
    Kind.CONNECTORS: "Connectors, by name; needs --connect.",
}


def _pattern_options(command: click.decorators.FC) -> click.decorators.FC:
    for kind, help_text in reversed(_NAMES.items()):
        command = click.option(f"--{kind.value}", multiple=True, metavar="PATTERN", help=help_text)(command)
    return command


@click.command()
@_pattern_options
@service_options
@bootstrap_option
def export(addresses: ServiceAddresses, bootstrap: str, **patterns: tuple[str, ...]) -> None:
    """Print topics, links, users, ACLs, quotas, schemas and connectors as the file for `headrace apply`.

    \b
    headrace export > cluster.yaml
    headrace export --topics 'shop.*' --acls 'shop-*' > shop.yaml

    Without a pattern it is everything: schemas with --registry, connectors with --connect. The same cluster
    gives the same bytes. Settings are those that are set for a topic. Passwords are not there: for each the
    file names a variable of the environment. Secrets of connectors are there as workers show them: [hidden].
    """
    chosen = Ownership({kind: patterns[kind.value] for kind in Kind if patterns[kind.value]})

    async def operation(cluster: Cluster) -> str:
        services = addresses.services
        owns = chosen if chosen.patterns else await _everything(cluster, services)
        present = await with_services(await ask_present(cluster, owns), services, owns)
        return write_document(present, owns)

    click.echo(with_cluster(bootstrap, operation), nl=False)


async def _everything(cluster: Cluster, services: Services) -> Ownership:
    """Without rules, where no authorizer keeps any, without links, where brokers have no such thing, and
    without what nobody says where it is."""
    kinds = list(Kind)
    if services.registry is None:
        kinds.remove(Kind.SCHEMAS)
    if services.connect is None:
        kinds.remove(Kind.CONNECTORS)
    if await many_links.linked_topics(cluster) is None:
        kinds.remove(Kind.LINKS)
    try:
        await acls.describe_acls(cluster)
    except Refused as error:
        if error.code != ErrorCode.SECURITY_DISABLED:
            raise
        click.echo("note: this cluster has no authorizer, so there are no acls", err=True)
        kinds.remove(Kind.ACLS)
    return Ownership(dict.fromkeys(kinds, (EVERYTHING,)))
