"""The figures of a broker, over the wire: told to whoever asks for them by name, and to nobody else."""

from __future__ import annotations

import asyncio

from headrace.broker.cluster.reachability import Reachability
from headrace.broker.runtime.health_report import Figure, HealthReport
from headrace.client import configs
from headrace.client.broker_health import BrokerHealth, ask_brokers
from headrace.client.cluster import Cluster
from headrace.client.configs import Resource, ResourceType
from headrace.config.health import HEALTH
from headrace.config.zookeeper_address import parse_zookeeper_connect
from headrace.testing import cluster as testing
from headrace.testing.simulation.coordination import SimulatedCoordination
from headrace.testing.simulation.ensemble import SimulatedEnsemble


async def test_what_is_not_known_is_not_told_and_looks_come_first() -> None:
    report = HealthReport()
    looked: list[int] = []

    async def look() -> None:
        looked.append(1)

    report.look_first(look)
    report.add("a", lambda: len(looked), "how often somebody looked")
    report.add("b", lambda: None, "nothing")
    report.add("c", lambda: True, "a truth")
    assert await report.tell() == [
        Figure(f"{HEALTH}.a", "1", "how often somebody looked"),
        Figure(f"{HEALTH}.c", "true", "a truth"),
    ]


async def test_whoever_is_cut_off_says_so_and_why() -> None:
    loop = asyncio.get_running_loop()
    coordination = SimulatedCoordination(SimulatedEnsemble(loop), loop)
    await coordination.start()
    reachability = Reachability(coordination, parse_zookeeper_connect("zk:2181"))
    report = HealthReport()
    reachability.report_to(report)
    told = {figure.name: figure.value for figure in await report.tell()}
    assert told[f"{HEALTH}.zookeeper.answers"] == "true"
    assert told[f"{HEALTH}.zookeeper.servers"] == "zk:2181"
    assert f"{HEALTH}.zookeeper.problem" not in told
    await coordination.close()
    told = {figure.name: figure.value for figure in await report.tell()}
    assert told[f"{HEALTH}.zookeeper.answers"] == "false"
    assert "do not restart" in told[f"{HEALTH}.zookeeper.problem"]
    assert reachability.noticed is not None


def test_a_broker_that_is_alone_has_no_zookeeper_to_tell_of() -> None:
    with testing.Cluster() as running:

        async def ask() -> tuple[dict[int, BrokerHealth], list[str]]:
            async with Cluster(running.bootstrap) as cluster:
                (broker_id,) = [node.node_id for node in (await cluster.metadata([])).brokers]
                resource = Resource(ResourceType.BROKER, str(broker_id))
                everything = await configs.describe_configs(cluster, resource)
                return await ask_brokers(cluster, [broker_id]), [entry.name for entry in everything]

        reports, names = asyncio.run(ask())
        (told,) = reports.values()
        assert told.answers
        assert told.reaches_zookeeper is None
        assert not [name for name in names if name.startswith(HEALTH)]


def test_a_broker_that_cannot_be_asked_does_not_answer() -> None:
    with testing.Cluster() as running:

        async def ask() -> dict[int, BrokerHealth]:
            async with Cluster(running.bootstrap) as cluster:
                return await ask_brokers(cluster, [99])

        assert asyncio.run(ask()) == {99: BrokerHealth(False)}
