"""Rights follow from one broker with an authorizer to another. No session is needed for that."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from headrace.client.acls import create_acls, delete_acls, describe_acls
from headrace.client.cluster import Cluster
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.spark.mirror import rights, translation_topic
from headrace.spark.mirror.clusters import Sides
from headrace.spark.mirror.problems import MirrorRefused
from headrace.spark.mirror.translation_topic import Merger, TranslationTopic
from tests.broker_process import BrokerProcess, HeadraceProcess

_PROPERTIES: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
_TOPIC: Final = "__translations"


def _read(name: str) -> AclRule:
    return AclRule(
        ResourceType.TOPIC, name, PatternType.LITERAL, "User:ada", "*", Operation.READ, Permission.ALLOW
    )


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[BrokerProcess, BrokerProcess]]:
    with (
        HeadraceProcess(tmp_path / "source", _PROPERTIES) as source,
        HeadraceProcess(tmp_path / "target", _PROPERTIES) as target,
    ):
        yield source, target


def test_rights_are_given_and_taken_away_as_on_the_source(
    guarded: tuple[BrokerProcess, BrokerProcess],
) -> None:
    source, target = (each.bootstrap for each in guarded)

    async def follow_them() -> None:
        async with Cluster(source) as here, Cluster(target) as there:
            sides = Sides(here, there)
            await translation_topic.prepare(there, _TOPIC)

            async def follow() -> list[str]:
                # As a run that has just begun: it knows only what the topic says.
                merger = Merger(there, _TOPIC, "m")
                await merger.begin()
                topic = TranslationTopic(there, _TOPIC)
                await rights.follow(sides, {"orders": "eu.orders", "users": "users"}, topic, merger)
                return [rule.name for rule in await describe_acls(there)]

            await create_acls(here, [_read("orders"), _read("other")])
            await create_acls(there, [_read("users"), _read("strange")])
            assert await follow() == ["eu.orders", "strange", "users"]
            await create_acls(here, [_read("users")])
            await delete_acls(here, [_read("orders")])
            assert await follow() == ["strange", "users"]
            await delete_acls(here, [_read("users")])
            assert await follow() == ["strange", "users"], "somebody else had given that right"

    asyncio.run(follow_them())


def test_without_an_authorizer_it_says_what_to_do(headrace: BrokerProcess) -> None:
    async def follow() -> None:
        async with Cluster(headrace.bootstrap) as one, Cluster(headrace.bootstrap) as other:
            await translation_topic.prepare(other, _TOPIC)
            topic, merger = TranslationTopic(other, _TOPIC), Merger(other, _TOPIC, "m")
            await rights.follow(Sides(one, other), {}, topic, merger)

    with pytest.raises(MirrorRefused, match="the source has no authorizer"):
        asyncio.run(follow())
