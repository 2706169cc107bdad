"""Consumer groups through every client: joining, leaving, committing, and keeping one's place."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence

import pytest

from tests.broker_process import BrokerProcess
from tests.compatibility.clients.client import ClientFailure, NewRecord
from tests.compatibility.clients.confluent import ConfluentClient
from tests.compatibility.members.all import KIND_NAMES, Programs, kinds
from tests.compatibility.members.member import Committed, Kind, Member, Membership, Read

PARTITIONS = 4
ALL = set(range(PARTITIONS))
SETTLE_SECONDS = 25
FENCED_INSTANCE_ID = 82
UNRELEASED_INSTANCE_ID = 111

Join = Callable[..., Member]


@pytest.fixture(params=KIND_NAMES)
def kind(request: pytest.FixtureRequest, programs: Programs) -> Kind:
    return kinds(programs)[request.param]


@pytest.fixture
def join(kind: Kind, broker: BrokerProcess, topic: str) -> Iterator[Join]:
    """Makes members of one group that reads `topic`; those that are left at the end are closed."""
    joined: list[Member] = []

    def one(instance: str | None = None, cooperative: bool = False) -> Member:
        wanted = Membership(f"group-{topic}", topic, instance, cooperative, kind.protocol)
        member = kind.join(broker.bootstrap, wanted)
        close = member.close

        def close_once() -> None:
            if member in joined:
                joined.remove(member)
                close()

        member.close = close_once  # type: ignore[method-assign]  # a test may close it before the end does
        joined.append(member)
        return member

    yield one
    for member in list(joined):
        member.close()


def fill(librdkafka: ConfluentClient, topic: str, name: str) -> None:
    for partition in range(PARTITIONS):
        librdkafka.produce(topic, [NewRecord(f"{name} {partition}".encode())], partition=partition)


def settle(members: Sequence[Member]) -> list[Read]:
    """Poll until each member has a share and nothing is left over or held twice; what was read meanwhile."""
    found: list[Read] = []
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        for member in members:
            found += member.poll(0.05)
        held = [member.assignment() for member in members]
        if all(held) and set().union(*held) == ALL and sum(map(len, held)) == PARTITIONS:
            return found
        assert time.monotonic() < deadline, f"assigned: {held}"


def read(
    member: Member, count: int, found: list[Read] | None = None, of: Collection[int] = ALL
) -> list[Read]:
    """So many records of these partitions; what comes of others is left out."""
    wanted = [entry for entry in found or () if entry.partition in of]
    deadline = time.monotonic() + SETTLE_SECONDS
    while len(wanted) < count:
        assert time.monotonic() < deadline, f"{len(wanted)} of {count} records"
        wanted += [entry for entry in member.poll(0.05) if entry.partition in of]
    return sorted(wanted)


def expected(name: str, offset: int, partitions: Sequence[int] = range(PARTITIONS)) -> list[Read]:
    return [Read(one, offset, f"{name} {one}".encode()) for one in partitions]


def test_a_member_joins_and_another_leaves(join: Join, librdkafka: ConfluentClient, topic: str) -> None:
    librdkafka.create_topic(topic, PARTITIONS)
    fill(librdkafka, topic, "first")
    one = join()
    assert read(one, PARTITIONS, settle([one])) == expected("first", 0)
    one.commit(dict.fromkeys(range(PARTITIONS), 1), "")

    other = join()
    assert settle([one, other]) == []
    assert {len(one.assignment()), len(other.assignment())} == {2}
    fill(librdkafka, topic, "second")
    shared = {0: one, 1: other}
    parts = [sorted(member.assignment()) for member in shared.values()]
    assert [read(member, 2) for member in shared.values()] == [expected("second", 1, part) for part in parts]

    other.close()
    # Nobody has committed the second round, so what the other had read comes again; with some protocols also
    # what this one had read, and perhaps first.
    again = read(one, 2, settle([one]), of=parts[1])
    assert again == expected("second", 1, parts[1])


def test_commit_seek_pause_and_resume(
    join: Join, kind: Kind, librdkafka: ConfluentClient, topic: str
) -> None:
    librdkafka.create_topic(topic, PARTITIONS)
    fill(librdkafka, topic, "first")
    member = join()
    read(member, PARTITIONS, settle([member]))
    metadata = "" if "metadata" in kind.lacks else "words \u00e9"
    assert member.committed(ALL) == {}
    member.commit({0: 1, 1: 1}, metadata)
    assert member.committed(ALL) == {0: Committed(1, metadata), 1: Committed(1, metadata)}

    if "seek" not in kind.lacks:
        member.seek(2, 0)
        assert read(member, 1) == expected("first", 0, [2])
    member.pause(3)
    fill(librdkafka, topic, "second")
    assert read(member, 3) == expected("second", 1, range(3))
    assert member.poll(0.2) == []
    member.resume(3)
    assert read(member, 1) == expected("second", 1, [3])
    member.close()

    successor = join()
    found = read(successor, 6, settle([successor]))
    assert found == sorted(expected("first", 0, [2, 3]) + expected("second", 1))


def test_a_static_member_comes_back_to_its_place(join: Join, librdkafka: ConfluentClient, topic: str) -> None:
    librdkafka.create_topic(topic, PARTITIONS)
    one, other = join(instance="one"), join(instance="other")
    settle([one, other])
    places = one.assignment(), other.assignment()
    revoked = len(other.revoked)
    one.close()
    back = join(instance="one")
    settle([back, other])
    assert (back.assignment(), other.assignment()) == places
    assert len(other.revoked) == revoked


def test_two_members_of_one_name(join: Join, kind: Kind, librdkafka: ConfluentClient, topic: str) -> None:
    """In the classic protocol the newer one wins, in the other the older one."""
    if "fencing" in kind.lacks:
        pytest.skip("the library does not tell its application")
    librdkafka.create_topic(topic, PARTITIONS)
    older = join(instance="same")
    settle([older])

    def poll_until_failure() -> None:
        newer = join(instance="same")
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline:
            newer.poll(0.05)
            older.poll(0.05)

    with pytest.raises(ClientFailure) as failure:
        poll_until_failure()
    fenced = FENCED_INSTANCE_ID if kind.protocol == "classic" else UNRELEASED_INSTANCE_ID
    assert failure.value.code == fenced


def test_cooperative_members_keep_what_stays_theirs(
    join: Join, kind: Kind, librdkafka: ConfluentClient, topic: str
) -> None:
    if "cooperative" in kind.lacks:
        pytest.skip("the library has no cooperative assignor")
    librdkafka.create_topic(topic, PARTITIONS)
    one = join(cooperative=True)
    settle([one])
    other = join(cooperative=True)
    settle([one, other])
    assert [part for part in one.revoked if part] == [other.assignment()]
    assert [part for part in other.revoked if part] == []
