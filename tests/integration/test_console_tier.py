"""The page Tier in front of a real broker and a real S3 server: what it says is what `headrace tier status`,
the bucket, the broker's disk and another client say."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from pyarrow.fs import FileInfo

from tests.broker_process import HeadraceProcess, Place
from tests.cluster.tiered_store import ENVIRONMENT, broker_properties, silent
from tests.cluster_process import eventually
from tests.directories.object_store import ObjectStore, running_object_store
from tests.integration.test_console import Console
from tests.integration.tiered_broker import (
    alter,
    bases,
    create_topic,
    headrace,
    objects_of,
    produce,
    status,
    wait_tiered,
)

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with running_object_store() as server:
        yield server


@pytest.fixture(scope="module")
def broker(store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadraceProcess]:
    directory = tmp_path_factory.mktemp("tiered")
    with HeadraceProcess(
        directory, broker_properties(store), place=Place(environment=ENVIRONMENT)
    ) as running:
        yield running


@pytest.fixture(scope="module")
def console(broker: HeadraceProcess) -> Iterator[Console]:
    console = Console(broker.bootstrap)
    yield console
    console.stop()


def row_of(page: Any, topic: str) -> Any:
    return next((row for row in page["listing"]["rows"] if row["name"] == topic), None)


def disk(broker: HeadraceProcess, topic: str) -> dict[int, int]:
    """Bytes of each segment, by its first offset."""
    found = {}
    for path in (broker.log_dir / f"{topic}-0").glob("*.log"):
        with suppress(FileNotFoundError):  # it has just gone
            found[int(path.stem)] = path.stat().st_size
    return dict(sorted(found.items()))


def remote_bytes(store: ObjectStore, paths: list[str]) -> int:
    """An object that has gone since the listing has no size. Then nothing agrees, and all are asked again."""
    found: list[FileInfo] = store.files().get_file_info([each for each in paths if each.endswith(".log")])
    return sum(each.size or 0 for each in found)


def bounds(broker: HeadraceProcess, topic: str) -> tuple[int, int]:
    """By librdkafka."""
    client, place = AdminClient({"bootstrap.servers": broker.bootstrap}), TopicPartition(topic, 0)
    specs = (OffsetSpec.earliest(), OffsetSpec.latest())  # type: ignore[no-untyped-call]  # confluent-kafka gives these no types
    found = [
        client.list_offsets({place: spec}, isolation_level=IsolationLevel.READ_UNCOMMITTED)[place].result(30)
        for spec in specs
    ]
    return found[0].offset, found[1].offset


def others_say(broker: HeadraceProcess, store: ObjectStore, topic: str) -> dict[str, Any]:
    """What the page has to say, from four sources that know nothing of it."""
    told = status(broker, topic)
    paths, segments = objects_of(store, broker, topic), disk(broker, topic)
    sealed = list(segments)[:-1]
    waiting = [segments[each] for each in sealed if each > max(bases(paths), default=-1)]
    log_start, end = bounds(broker, topic)
    assert (told["log_start"], told["end"]) == (log_start, end)
    return {
        "remote_bytes": remote_bytes(store, paths),
        "local_bytes": sum(segments.values()),
        "waiting_bytes": sum(waiting),
        "waiting_segments": len(waiting),
        "log_start": log_start,
        "local_start": min(segments),
        "tiered_end": told["tiered_end"],
        "end": end,
        "only_remote": told["only_remote"],
        "only_local": told["only_local"],
    }


def page_says(console: Console, topic: str) -> dict[str, Any] | None:
    row = row_of(console.json("/tier"), topic)
    if row is None or row["unknown"]:
        return None
    detail = console.json(f"/tier/{topic}")["rows"][0]
    names = ("remote_bytes", "local_bytes", "waiting_bytes", "waiting_segments", "log_start", "local_start")
    shares = row["shares"]
    assert sum(shares.values()) == detail["end"] - detail["log_start"] or detail["end"] < detail["log_start"]
    return {
        **{name: row[name] for name in names},
        "tiered_end": detail["tiered_end"],
        "end": detail["end"],
        "only_remote": shares["only_remote"],
        "only_local": shares["waiting"] + shares["written"],
    }


def agree(broker: HeadraceProcess, store: ObjectStore, console: Console, topic: str) -> dict[str, Any]:
    """Once nothing moves any more, each number is the same."""
    until = time.monotonic() + 90
    while True:
        expected, found = others_say(broker, store, topic), page_says(console, topic)
        if found == expected:
            return found
        assert time.monotonic() < until, f"the page says {found}, others {expected}"
        time.sleep(0.5)


def test_numbers_are_those_of_the_bucket_the_disk_and_other_clients(
    broker: HeadraceProcess, store: ObjectStore, console: Console
) -> None:
    topic = create_topic(broker)
    create_topic(broker, {"remote.storage.enable": "false"})
    produce(broker, topic, 0, 4000)
    wait_tiered(broker, topic, 2000)
    found = agree(broker, store, console, topic)
    assert found["remote_bytes"] > 200_000
    assert found["only_remote"] >= 2000
    assert found["waiting_bytes"] == 0
    page = console.json("/tier")
    assert page["others"] == 1
    assert page["store"]["failures"] == []
    assert page["store"]["brokers"] == [broker.broker_id]
    own = console.json(f"/topics/{topic}")["tier"]
    assert own["remote_bytes"] == found["remote_bytes"]
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    place = TopicPartition(topic, 0, 1500)
    client.delete_records([place])[place].result(60)
    produce(broker, topic, 4000, 500)
    assert agree(broker, store, console, topic)["log_start"] == 1500


def test_a_fork_is_told_with_its_origin(
    broker: HeadraceProcess, store: ObjectStore, console: Console
) -> None:
    topic = create_topic(broker)
    produce(broker, topic, 0, 3000)
    wait_tiered(broker, topic, 1500)
    code, said = headrace(broker, "topic", "fork", topic, f"{topic}-fork", "--at", "1000")
    assert code == 0, said
    page = console.until("/tier", lambda found: (row_of(found, f"{topic}-fork") or {}).get("unknown") == 0)
    row = row_of(page, f"{topic}-fork")
    assert (row["is_fork"], row["origin"]) == (True, topic)
    told = status(broker, f"{topic}-fork")
    assert row["shares"]["only_remote"] == told["only_remote"]
    assert page["forks"] == 1


def test_while_the_store_is_silent_the_page_says_so_and_what_waits(
    broker: HeadraceProcess, store: ObjectStore, console: Console
) -> None:
    topic = create_topic(broker)
    produce(broker, topic, 0, 3000)
    wait_tiered(broker, topic, 1000)
    before = agree(broker, store, console, topic)
    with silent(store):
        produce(broker, topic, 3000, 3000)
        page = console.until("/tier", lambda found: bool(found["store"]["failures"]))
        assert page["store"]["failures"][0]["brokers"] == [broker.broker_id]
        row = row_of(console.json("/tier"), topic)
        segments = disk(broker, topic)
        end = status(broker, topic)["tiered_end"]
        waiting = [segments[each] for each in list(segments)[:-1] if each >= end]
        assert (row["waiting_bytes"], row["waiting_segments"]) == (sum(waiting), len(waiting))
        assert len(waiting) >= 3
        later = console.until("/tier", lambda found: row_of(found, topic)["waiting_ms"] > row["waiting_ms"])
        assert row_of(later, topic)["waiting_bytes"] == sum(waiting)
        _, text = console.get("/tier")
        assert "The object store fails at broker" in text
    wait_tiered(broker, topic, 4000)
    assert agree(broker, store, console, topic)["remote_bytes"] > before["remote_bytes"]
    console.until("/tier", lambda found: not found["store"]["failures"])


def test_a_leader_that_has_not_read_the_manifest_tells_no_start(
    broker: HeadraceProcess, store: ObjectStore, console: Console
) -> None:
    topic = create_topic(broker)
    produce(broker, topic, 0, 3000)
    wait_tiered(broker, topic, 1000)
    agree(broker, store, console, topic)
    with silent(store):
        broker.kill()
        broker.start()
        row = row_of(
            console.until("/tier", lambda found: (row_of(found, topic) or {}).get("unknown") == 1), topic
        )
        assert row["remote_bytes"] is None
        assert row["log_start"] is None
        assert "Nobody tells now where it begins and ends." in console.get("/tier")[1]
    agree(broker, store, console, topic)


def test_a_topic_is_there_soon_after_it_was_switched_on(broker: HeadraceProcess, console: Console) -> None:
    """Settings of topics that were there before are asked for once a minute."""
    topic = create_topic(broker, {"remote.storage.enable": "false"})
    console.until("/topics", lambda found: any(row["name"] == topic for row in found["listing"]["rows"]))
    assert row_of(console.json("/tier"), topic) is None
    alter(broker, topic, remote_storage_enable="true")
    console.until("/tier", lambda found: row_of(found, topic) is not None)
    eventually(lambda: console.get(f"/tier/{topic}")[0] == 200, 60, "its page is there")
