"""Which ZooKeeper a command speaks to, and how: as the file of a broker says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from headrace.config.zookeeper_address import ZooKeeperAddress
    from headrace.config.zookeeper_security import ZooKeeperSecurity

F = TypeVar("F", bound=Callable[..., Any])


def broker_file_option(command: F) -> F:
    return click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="A broker's server.properties: zookeeper.connect, and how ZooKeeper is protected.",
    )(command)


def ensemble_of(config: str | None, zookeeper: str | None) -> tuple[ZooKeeperAddress, ZooKeeperSecurity]:
    """`zookeeper` counts above the file. Raises ConfigError."""
    from headrace.config.broker import BrokerConfig
    from headrace.config.properties_file import read_properties
    from headrace.config.zookeeper_address import parse_zookeeper_connect
    from headrace.config.zookeeper_security import OPEN

    address, security = parse_zookeeper_connect(zookeeper, "--zookeeper"), OPEN
    if config is not None:
        parsed = BrokerConfig.parse(read_properties(config))
        address, security = address or parsed.zookeeper, parsed.zookeeper_security
    if address is None:
        raise click.UsageError("name a ZooKeeper: --config FILE with zookeeper.connect, or --zookeeper")
    return address, security
