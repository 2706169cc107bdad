"""Changes of a cluster that does not exist: plans as they would be, and a cluster that obeys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from headrace.client.cluster import Cluster
from headrace.client.configs import ConfigEntry
from headrace.client.errors import ClientFailure, Refused
from headrace.client.offset_resets import PlannedReset
from headrace.client.security import PLAINTEXT
from headrace.console.changes.making import Actor, Changes
from headrace.console.changes.planned import Line, Plan, Planned, Shift, Subject, Tell
from headrace.core.ids import TopicPartition
from headrace.desired.changes import Difference
from headrace.protocol.error_codes import ErrorCode
from headrace.security.acl import ResourceType

HOSTILE = "<script>document.title='taken'</script>\u202e"


class Obedient:
    """Stands for a cluster, and remembers what it was told."""

    def __init__(self) -> None:
        self.retention = "604800000"
        self.told: list[str] = []
        self.failure: ClientFailure | None = None
        self.closed = 0

    async def __aenter__(self) -> Obedient:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.closed += 1


def made_up_changes() -> tuple[MadeUpChanges, Obedient]:
    obedient = Obedient()
    return MadeUpChanges(obedient), obedient


class MadeUpChanges(Changes):
    def __init__(self, obedient: Obedient) -> None:
        super().__init__(lambda _: cast(Any, obedient), PLAINTEXT)

    async def plan(self, actor: Actor, plan: Plan, name: str, fields: Mapping[str, str]) -> Planned:
        return await super().plan(actor, _stand_in(plan), name, fields)

    async def make(
        self, actor: Actor, path: str, plan: Plan, name: str, fields: Mapping[str, str], yes: Any
    ) -> int:
        return await super().make(actor, path, _stand_in(plan), name, fields, yes)

    async def settings(self, actor: Actor, topic: str) -> list[ConfigEntry]:
        return [
            ConfigEntry("retention.ms", "604800000", 1, False, False, "604800000", "How long records stay."),
            ConfigEntry("cleanup.policy", "delete", 5, False, False, "delete", HOSTILE),
            ConfigEntry("min.insync.replicas", "2", 4, False, False, "1", None),
        ]


def _stand_in(plan: Plan) -> Plan:
    return STAND_INS[cast(Any, plan).__name__]


async def settings(cluster: Cluster, name: str, fields: Mapping[str, str]) -> Planned:
    obedient = cast(Any, cluster)
    wanted = fields.get("setting.retention.ms", "")
    differences = (Difference("retention.ms", obedient.retention, wanted or None),)
    lines = () if wanted == obedient.retention else (Line("~", f"topic {name}", differences),)
    refused = ("The retention is too short.",) if wanted == "1" else ()

    async def run(_: Cluster, tell: Tell) -> None:
        tell("1 of 1: change settings")
        if obedient.failure is not None:
            raise obedient.failure
        obedient.retention = wanted
        obedient.told.append(f"retention.ms={wanted}")

    return Planned(
        Subject(ResourceType.TOPIC, name),
        f"Change topic {name}",
        lines,
        (f"headrace config set --topic {name} retention.ms={wanted}",),
        run,
        refused=refused,
        fields=tuple(fields.items()),
    )


async def deletion(cluster: Cluster, name: str, fields: Mapping[str, str]) -> Planned:
    obedient = cast(Any, cluster)

    async def run(_: Cluster, tell: Tell) -> None:
        tell("1 of 1: delete topics")
        if name == "clicks":
            raise Refused(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                "topic clicks: this user has no right to do that",
                "`headrace acl explain USER OPERATION TOPIC` says why",
            )
        obedient.told.append(f"delete {name}")

    return Planned(
        Subject(ResourceType.TOPIC, name),
        f"Delete topic {name}",
        (Line("-", f"topic {name}"),),
        (f"headrace topic delete {name}",),
        run,
        notes=("It has 1,200 records and is read by billing.", "There is no way back."),
        typed=name,
    )


async def reset(cluster: Cluster, name: str, fields: Mapping[str, str]) -> Planned:
    async def run(_: Cluster, tell: Tell) -> None:
        tell("1 of 1: commit offsets")

    entries = [
        PlannedReset(TopicPartition("orders", 0), 900, 100, 100, 1000, 0),
        PlannedReset(TopicPartition("orders", 1), 100, 1000, 0, 1000, 1000),
        PlannedReset(TopicPartition("orders", 2), None, 400, 0, 1000, 400),
    ]
    return Planned(
        Subject(ResourceType.GROUP, name),
        f"Reset group {name}",
        (),
        (f"headrace group reset {name} --to-earliest --execute",),
        run,
        shifts=tuple(map(Shift.of, entries)),
        notes=("orders-0: 0 is outside of the log, so 100 is taken.",),
    )


async def nothing(cluster: Cluster, name: str, fields: Mapping[str, str]) -> Planned:
    async def run(_: Cluster, tell: Tell) -> None:
        raise AssertionError("there is nothing to do")

    return Planned(Subject(ResourceType.TOPIC, name), f"Give leadership of {name} back", (), (), run)


async def record(cluster: Cluster, name: str, fields: Mapping[str, str]) -> Planned:
    obedient = cast(Any, cluster)

    async def run(_: Cluster, tell: Tell) -> None:
        tell("1 of 1: write 1 record to orders-0")
        obedient.told.append(f"{fields.get('key')}={fields.get('value')}")

    return Planned(
        Subject(ResourceType.TOPIC, name),
        f"Produce a record into {name}",
        (Line("+", f"record in {name}-0"),),
        (),
        run,
        fields=tuple(fields.items()),
        shown=(("Key", fields.get("key", "")), ("Value", fields.get("value", "") + HOSTILE)),
        adds=True,
    )


async def copies(cluster: Cluster, name: str, fields: Mapping[str, str]) -> Planned:
    obedient = cast(Any, cluster)

    async def run(_: Cluster, tell: Tell) -> None:
        tell("1 of 1: write 2 records to payments-0")
        obedient.told.append(f"copy {fields['records']} of {name} into {fields['to']}")

    return Planned(
        Subject(ResourceType.TOPIC, fields["to"]),
        f"Copy 2 records of {name} into {fields['to']}",
        (Line("+", f"2 records in {fields['to']}-0"),),
        (),
        run,
        fields=tuple(fields.items()),
        beside=(Subject(ResourceType.TOPIC, name),),
        adds=True,
    )


STAND_INS: dict[str, Plan] = {
    "plan_settings": settings,
    "plan_deletion": deletion,
    "plan_reset": reset,
    "plan_record": record,
    "plan_copies": copies,
    "plan_election": nothing,
    "plan_cancellation": nothing,
}
