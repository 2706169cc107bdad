"""`headrace doctor security`: what is open, expired or readable by others, in a cluster or in files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from headrace.cli.lazy_group import FAILED
from headrace.cli.options import bootstrap_option, output_option, with_cluster
from headrace.cli.render import print_json, print_table
from headrace.config.security_findings import Finding, Level, examine, expiry
from headrace.doctor.protection import Placed, in_cluster

if TYPE_CHECKING:
    from headrace.config.broker import BrokerConfig


@click.command()
@click.option(
    "--config",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Look at this server.properties, and ask no broker; may be repeated.",
)
@bootstrap_option
@output_option
def security(files: tuple[str, ...], bootstrap: str, as_json: bool) -> int:
    """Find what is open, expired or readable by others, and say what to do about each.

    Every broker of the cluster examines its listeners, certificates, files and settings; the rules are looked
    at besides. With --config the same is found in files, on the machine where they are.

    The exit code is 1 if something is serious.
    """
    found = (
        [each for file in files for each in _in_file(file)] if files else with_cluster(bootstrap, in_cluster)
    )
    found.sort(key=lambda each: (each.finding.level != Level.SERIOUS, each.where, each.finding))
    if as_json:
        print_json([{"where": where, **finding._asdict()} for where, finding in found])
    else:
        _print(found)
    return FAILED if any(finding.level == Level.SERIOUS for _, finding in found) else 0


def _print(found: list[Placed]) -> None:
    print_table(
        ("LEVEL", "WHERE", "SUBJECT", "FOUND", "WHAT TO DO"),
        [(each.level.value, where, each.subject, each.text, each.cure) for where, each in found],
        empty="nothing was found",
    )


# --- files ------------------------------------------------------------------------------------------------


def _in_file(path: str) -> Iterator[Placed]:
    # Only here: whoever asks a cluster needs neither the broker's code nor a library for certificates.
    from headrace.broker.security.self_examination import open_files, private_files
    from headrace.config.broker import BrokerConfig
    from headrace.config.properties_file import read_properties

    properties = read_properties(path)
    config = BrokerConfig.parse(properties)
    findings = [*examine(config), *_expiries(config), *open_files(private_files(config))]
    if any("password" in name or name.endswith(("jaas.config", ".key")) for name in properties):
        findings += open_files([path])
    return (Placed(path, each) for each in findings)


def _expiries(config: BrokerConfig) -> Iterator[Finding]:
    from headrace.tls.certificate import facts_of
    from headrace.tls.stores import read_identity

    for name, protected in config.listener_security.items():
        if protected.tls is not None:
            facts = facts_of(read_identity(protected.tls.key_store).chain)
            yield from expiry(f"listener {name}", facts.not_after - time.time())
