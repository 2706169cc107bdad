"""The member node and the file of the incarnation: what is written is read back, damage is not trusted."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from headrace.broker.cluster import description
from headrace.controller.brokers import BrokerDescription
from headrace.controller.image import Endpoint
from headrace.core.errors import CorruptLog
from headrace.core.ids import BrokerId
from headrace.testing.disk import SimulatedDisk

OLDER, LAST = UUID(int=11), UUID(int=12)
TOLD = BrokerDescription(
    broker_id=BrokerId(3),
    incarnation_id=UUID(int=7),
    endpoints=(Endpoint("INSIDE", "10.0.0.3", 9092), Endpoint("OUTSIDE", "::1", 9093, 3)),
    rack="r1",
    directories=(UUID(int=8), UUID(int=9)),
    features={"metadata.version": (25, 25)},
    previous_epoch=41,
    stopped="same-boot",
    earlier_incarnations=(OLDER, LAST),
)


def test_a_description_is_read_back_as_it_was_written() -> None:
    assert description.decode(BrokerId(3), description.encode(TOLD)) == TOLD


def test_the_node_has_the_fields_that_kafkas_tools_look_for() -> None:
    node = json.loads(description.encode(TOLD))
    assert (node["host"], node["port"]) == ("10.0.0.3", 9092)
    assert node["endpoints"] == ["INSIDE://10.0.0.3:9092", "OUTSIDE://::1:9093"]
    assert node["listener_security_protocol_map"] == {"INSIDE": "PLAINTEXT", "OUTSIDE": "SASL_SSL"}


@pytest.mark.parametrize("node", [b"", b"{}", b"[]", b'{"incarnation": 1}', b"\xff"])
def test_a_node_that_cannot_be_read_is_told_as_such(node: bytes) -> None:
    with pytest.raises(CorruptLog):
        description.decode(BrokerId(3), node)


def disk_with(*paths: str) -> SimulatedDisk:
    disk = SimulatedDisk()
    for path in paths:
        disk.make_dirs(path)
        disk.sync_dir("/")
    return disk


def test_an_incarnation_is_recalled_after_a_power_loss() -> None:
    disk = disk_with("/a", "/b")
    description.remember(disk, ["/a", "/b"], "boot", (OLDER, LAST))
    disk.crash(keep=0.0)
    assert description.recall(disk, ["/a", "/b"]) == ("boot", (OLDER, LAST))


def test_a_new_disk_among_the_directories_knows_nothing() -> None:
    disk = disk_with("/a", "/b")
    description.remember(disk, ["/a"], "boot", (OLDER, LAST))
    assert description.recall(disk, ["/a", "/b"]) is None


def test_directories_that_disagree_know_nothing() -> None:
    disk = disk_with("/a", "/b")
    description.remember(disk, ["/a"], "boot", (OLDER, LAST))
    description.remember(disk, ["/b"], "boot", (OLDER,))
    assert description.recall(disk, ["/a", "/b"]) is None


def test_a_directory_that_failed_does_not_call_itself_whole_again() -> None:
    disk = disk_with("/a", "/b")
    description.remember(disk, ["/a", "/b"], "boot", (OLDER, LAST))
    description.forget(disk, "/b")
    assert description.recall(disk, ["/a", "/b"]) is None
    description.forget(disk, "/b")
