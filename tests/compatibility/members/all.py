"""The kinds of members under test. Programs in other languages are started once and hold many members."""

from __future__ import annotations

from typing import Self

from tests.compatibility.clients.json_lines import (
    FranzClient,
    JavaClient,
    JsonLinesClient,
    OlderJavaClient,
    SaramaClient,
)
from tests.compatibility.members.aio import AioKafkaMember
from tests.compatibility.members.confluent import ConfluentMember
from tests.compatibility.members.json_lines import JsonLinesMember
from tests.compatibility.members.kafka_python import KafkaPythonMember
from tests.compatibility.members.member import Kind, Member, Membership

_PROGRAMS: dict[str, type[JsonLinesClient]] = {
    kind.name: kind for kind in (JavaClient, OlderJavaClient, FranzClient, SaramaClient)
}


class Programs:
    """The programs that have been needed so far, for one broker."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, str], JsonLinesClient] = {}

    def get(self, name: str, bootstrap: str) -> JsonLinesClient:
        if (name, bootstrap) not in self._running:
            self._running[name, bootstrap] = _PROGRAMS[name](bootstrap)
        return self._running[name, bootstrap]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for program in self._running.values():
            program.close()


def kinds(programs: Programs) -> dict[str, Kind]:
    def within(name: str, protocol: str = "classic", *lacks: str) -> Kind:
        def join(bootstrap: str, wanted: Membership) -> Member:
            return JsonLinesMember(programs.get(name, bootstrap), wanted)

        return Kind(f"{name} {protocol}", join, protocol, frozenset(lacks))

    every = (
        Kind("confluent-kafka classic", ConfluentMember),
        Kind("confluent-kafka consumer", ConfluentMember, "consumer"),
        # kafka-python's application is not told when another took its instance.
        Kind("kafka-python classic", KafkaPythonMember, "classic", frozenset({"fencing"})),
        # aiokafka has eager assignors only, tells no metadata of commits and has no word for fencing.
        Kind(
            "aiokafka classic", AioKafkaMember, "classic", frozenset({"cooperative", "metadata", "fencing"})
        ),
        within(JavaClient.name),
        within(JavaClient.name, "consumer"),
        within(OlderJavaClient.name),
        within(FranzClient.name),
        # Sarama has eager assignors only, and cannot move forward in a partition without a new session.
        within(SaramaClient.name, "classic", "cooperative", "seek"),
    )
    return {kind.name: kind for kind in every}


KIND_NAMES = tuple(kinds(Programs()))
