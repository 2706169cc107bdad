from __future__ import annotations

from headrace.protocol.messages import alter_client_quotas_request as alteration
from headrace.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from headrace.protocol.messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from headrace.protocol.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from tests.unit.broker.security.controller_context import Server

Entity = tuple[tuple[str, str | None], ...]
ALICE: Entity = (("user", "alice"),)
BOTH: Entity = (("client-id", None), ("user", "alice"))


def entry(entity: Entity, **values: float | None) -> alteration.EntryData:
    return alteration.EntryData(
        entity=[alteration.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[
            alteration.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in values.items()
        ],
    )


async def alter(
    server: Server, *entries: alteration.EntryData, validate_only: bool = False
) -> dict[Entity, int]:
    request = alteration.AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    answer = await server.ask(request, AlterClientQuotasResponse)
    return {
        tuple((part.entity_type, part.entity_name) for part in each.entity): each.error_code
        for each in answer.entries
    }


async def describe(
    server: Server, *components: tuple[str, int, str | None], strict: bool = False
) -> DescribeClientQuotasResponse:
    asked = [
        ComponentData(entity_type=kind, match_type=number, match=match) for kind, number, match in components
    ]
    return await server.ask(
        DescribeClientQuotasRequest(components=asked, strict=strict), DescribeClientQuotasResponse
    )


def found(answer: DescribeClientQuotasResponse) -> dict[Entity, dict[str, float]]:
    assert answer.error_code == 0
    return {
        tuple((part.entity_type, part.entity_name) for part in each.entity): {
            value.key: value.value for value in each.values
        }
        for each in answer.entries or ()
    }


async def test_quotas_are_set_described_and_removed() -> None:
    server = Server()
    assert await alter(server, entry(ALICE, producer_byte_rate=1e6), entry(BOTH, request_percentage=1.5)) == {
        ALICE: 0,
        BOTH: 0,
    }
    assert found(await describe(server)) == {
        ALICE: {"producer_byte_rate": 1e6},
        BOTH: {"request_percentage": 1.5},
    }
    assert found(await describe(server, ("user", 0, "alice"), strict=True)) == {
        ALICE: {"producer_byte_rate": 1e6}
    }
    assert await alter(server, entry(ALICE, producer_byte_rate=None)) == {ALICE: 0}
    assert list(found(await describe(server))) == [BOTH]


async def test_an_order_of_parts_is_no_other_entity() -> None:
    server = Server()
    await alter(server, entry(BOTH, producer_byte_rate=1.0))
    await alter(server, entry(BOTH[::-1], producer_byte_rate=2.0))
    assert found(await describe(server)) == {BOTH: {"producer_byte_rate": 2.0}}
    twice = await alter(
        server, entry(BOTH, producer_byte_rate=3.0), entry(BOTH[::-1], producer_byte_rate=4.0)
    )
    assert twice == {BOTH: 42}


async def test_validation_stores_nothing() -> None:
    server = Server()
    codes = await alter(
        server,
        entry(ALICE, producer_byte_rate=1.0),
        entry(BOTH, producer_byte_rate=-1.0),
        validate_only=True,
    )
    assert codes == {ALICE: 0, BOTH: 42}
    assert len(server.cluster.image.quotas) == 0


async def test_a_filter_that_cannot_be_has_an_error_and_no_entries() -> None:
    server = Server()
    for components, code in (
        ([("user", 0, None)], 42),
        ([("user", 2, None), ("user", 2, None)], 42),
        ([("ip", 2, None), ("user", 2, None)], 42),
        ([("group", 2, None)], 35),
    ):
        answer = await describe(server, *components)
        assert (answer.error_code, answer.entries) == (code, None)


async def test_an_entity_of_very_many_parts_is_refused_and_not_repeated_in_the_answer() -> None:
    server = Server()
    parts: Entity = tuple(("user", f"user-{n}") for n in range(10_000))
    (entity,) = (answered := await alter(server, entry(parts, producer_byte_rate=1.0)))
    assert answered[entity] == 42
    assert len(entity) == 4


async def test_many_entities_are_altered_in_parts() -> None:
    server = Server()
    entities: list[Entity] = [(("user", f"user-{n}"),) for n in range(350)]
    codes = await alter(server, *(entry(entity, producer_byte_rate=5.0) for entity in entities))
    assert codes == dict.fromkeys(entities, 0)
    assert len(server.controller.commits) == 4
    assert len(found(await describe(server, ("user", 2, None)))) == 350


async def test_a_controller_that_cannot_decide_is_told_for_each() -> None:
    server = Server()
    server.controller.time_out()
    assert await alter(server, entry(ALICE, producer_byte_rate=1.0)) == {ALICE: 7}
