"""Brokers that self-balancing leaves alone: one that is drained would be filled again otherwise."""

from __future__ import annotations

from typing import Final

from headrace.client import configs, health
from headrace.client.cluster import Cluster
from headrace.client.configs import Resource, ResourceType
from headrace.config.broker_properties.balancing import BalancingProperties

ENABLE: Final = BalancingProperties.headrace_balance_enable.name
EXCLUDED: Final = BalancingProperties.headrace_balance_excluded_brokers.name
_ALL_BROKERS: Final = Resource(ResourceType.BROKER, "")


async def exclude_from_balancing(cluster: Cluster, broker_id: int) -> bool:
    """Where self-balancing is on; whether that changed anything."""
    is_enabled, excluded = await _told(cluster)
    if not is_enabled or broker_id in excluded:
        return False
    await _set(cluster, [*excluded, broker_id])
    return True


async def include_in_balancing(cluster: Cluster, broker_id: int) -> bool:
    """Another broker may get its id."""
    _, excluded = await _told(cluster)
    if broker_id not in excluded:
        return False
    await _set(cluster, [each for each in excluded if each != broker_id])
    return True


async def _told(cluster: Cluster) -> tuple[bool, list[int]]:
    """As the controller has it. A broker that knows no self-balancing says nothing of it."""
    controller = (await health.describe_cluster(cluster)).controller
    entries = await configs.describe_configs(
        cluster, Resource(ResourceType.BROKER, str(controller)), [ENABLE, EXCLUDED]
    )
    values = {entry.name: entry.value or "" for entry in entries}
    named = values.get(EXCLUDED, "").split(",")
    return values.get(ENABLE) == "true", [int(each) for each in named if each.strip().isdecimal()]


async def _set(cluster: Cluster, excluded: list[int]) -> None:
    value = ",".join(map(str, excluded)) or None
    await configs.alter_configs(cluster, _ALL_BROKERS, {EXCLUDED: value})
