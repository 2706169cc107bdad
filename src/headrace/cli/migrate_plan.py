"""`headrace migrate plan`: what would be migrated, and what stands in the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from headrace.cli.migrate_options import say_next, source_security, state_option
from headrace.cli.options import bootstrap_of, bootstrap_option, json_option, with_cluster
from headrace.cli.other_cluster import reached_by
from headrace.cli.render import print_json, print_table
from headrace.cli.values import counted
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.private_files import READABLE, write_file
from headrace.migration import obstacles, order, state_file
from headrace.migration.state import MigratedTopic, Migration, SourceCluster, TargetCluster
from headrace.migration.survey import Survey, survey
from headrace.security.acl_document import document_of


@click.command()
@click.option(
    "--from",
    "source",
    required=True,
    metavar="HOST:PORT",
    help="Brokers of the source, as the brokers of the target reach them.",
)
@click.option(
    "--source-config",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Client properties with which these commands connect to the source.",
)
@click.option(
    "--client-config",
    metavar="NAME",
    help="Client properties with which the brokers connect there: a file in headrace.link.client.config.dir"
    " of each broker.",
)
@click.option(
    "-t",
    "--topics",
    "patterns",
    multiple=True,
    required=True,
    metavar="PATTERN",
    help="Topics, as in 'orders-*'; may be repeated.",
)
@click.option(
    "--groups",
    "group_patterns",
    multiple=True,
    default=("*",),
    show_default=True,
    metavar="PATTERN",
    help="Groups whose offsets of these topics are carried; '' for none.",
)
@click.option(
    "-r", "--replication-factor", type=int, default=-1, help="Replicas here; by default the broker's."
)
@click.option(
    "--rules",
    "rules_path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the source's rules about these topics and groups there, for `headrace acl apply FILE`.",
)
@state_option
@bootstrap_option
@json_option
def plan(
    source: str,
    source_config: str | None,
    client_config: str | None,
    patterns: tuple[str, ...],
    group_patterns: tuple[str, ...],
    replication_factor: int,
    rules_path: Path | None,
    path: Path,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Look at both clusters, and say what would be migrated and what stands in the way.

    Nothing is changed in either. If nothing stands in the way, the plan is written to --state; else the exit
    code is 1.
    """
    groups = [each for each in group_patterns if each]
    if any("," in each for each in groups):
        raise click.UsageError("a pattern of groups has no comma: write ? for it, or repeat --groups")
    with state_file.held(path):
        order.check_plan(state_file.read(path) if path.exists() else None)
        found = _survey(source, source_config, list(patterns), groups, replication_factor, bootstrap)
        findings = obstacles.judge(found)
        migration = _planned(found, source, source_config, client_config, groups, bootstrap)
        migration.replication_factor = replication_factor
        forbidden = sum(finding.forbids for finding in findings)
        if not forbidden:
            state_file.write(path, migration)
        if rules_path is not None:
            _write_rules(rules_path, found)
    if as_json:
        print_json({"planned": not forbidden, **_document(found, findings)})
    else:
        _show(found, findings)
    if forbidden:
        raise ClientFailure(f"{counted(forbidden, 'thing stands', 'things stand')} in the way, see above")
    if not as_json:
        say_next(migration)


def _survey(
    source: str,
    source_config: str | None,
    patterns: list[str],
    groups: list[str],
    replication_factor: int,
    bootstrap: str,
) -> Survey:
    how = source_security(source_config)

    async def look(target: Cluster) -> Survey:
        async with Cluster(source, client_id="headrace-migrate", security=how) as other:
            with reached_by("--from", "--source-config"):
                await other.metadata([])
            return await survey(other, target, patterns, groups, replication_factor)

    return with_cluster(bootstrap, look)


def _planned(
    found: Survey,
    source: str,
    source_config: str | None,
    client_config: str | None,
    groups: list[str],
    bootstrap: str,
) -> Migration:
    config = None if source_config is None else str(Path(source_config).resolve())
    return Migration(
        SourceCluster(source, config, client_config, found.source_cluster_id),
        TargetCluster(bootstrap_of(bootstrap), found.target_cluster_id),
        {
            topic.source.name: MigratedTopic(str(topic.source.topic_id), topic.source.partitions, topic.bytes)
            for topic in found.topics
        },
        groups,
    )


def _write_rules(path: Path, found: Survey) -> None:
    topics = [topic.source for topic in found.topics]
    rules = obstacles.rules_of(found.rules_there.rules, topics, found.groups)
    text = json.dumps([document_of(rule) for rule in rules], indent=2) + "\n"
    write_file(path, text.encode(), READABLE)


def _show(found: Survey, findings: list[obstacles.Finding]) -> None:
    print_table(
        ("TOPIC", "PARTITIONS", "MB", "SETTINGS"),
        [
            (
                topic.source.name,
                topic.source.partitions,
                round(topic.bytes / 1e6, 1),
                [f"{name}={value}" for name, value in sorted(topic.source.settings.items())],
            )
            for topic in found.topics
        ],
    )
    if found.groups:
        click.echo()
        print_table(
            ("GROUP", "KIND", "STATE", "PARTITIONS", "AT THE TARGET"),
            [
                (each.group_id, each.kind, each.state, each.partitions, each.state_here)
                for each in found.groups
            ],
        )
    click.echo()
    for finding in findings:
        todo = f" ({finding.todo})" if finding.todo else ""
        click.echo(f"{'IN THE WAY' if finding.forbids else 'note'}: {finding.subject}: {finding.text}{todo}")
    size = sum(topic.bytes for topic in found.topics)
    partitions = sum(topic.source.partitions for topic in found.topics)
    click.echo(
        f"in all: {counted(len(found.topics), 'topic')}, {counted(partitions, 'partition')},"
        f" {size / 1e6:,.1f} MB at the source"
    )


def _document(found: Survey, findings: list[obstacles.Finding]) -> dict[str, Any]:
    return {
        "source_cluster_id": found.source_cluster_id,
        "target_cluster_id": found.target_cluster_id,
        "topics": [{**topic.source._asdict(), "bytes": topic.bytes} for topic in found.topics],
        "groups": [each._asdict() for each in found.groups],
        "findings": [finding._asdict() for finding in findings],
    }
