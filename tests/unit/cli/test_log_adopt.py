"""Partitions that another broker wrote, brought into ours."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.core.ids import TopicPartition
from headrace.log.checkpoints import format_offsets, format_partition_metadata
from headrace.protocol.compression import Compression
from headrace.protocol.records import NewRecord, encode_batch
from headrace.testing.cluster import Cluster

TOPIC_ID = uuid.UUID(int=77)


def batch(base: int, count: int, epoch: int = 4, producer_id: int = 5000) -> bytearray:
    return encode_batch(
        [NewRecord(b"%d" % (base + n), b"k", 1_700_000_000_000 + base + n) for n in range(count)],
        base_offset=base,
        leader_epoch=epoch,
        compression=Compression.LZ4,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=base,
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A log dir as Kafka leaves it: two partitions, one in two segments, indexes with reserved room."""
    root = tmp_path / "kafka"
    for index in range(2):
        path = root / f"orders-{index}"
        path.mkdir(parents=True)
        (path / f"{0:020d}.log").write_bytes(batch(0, 10) + batch(10, 10))
        (path / f"{20:020d}.log").write_bytes(batch(20, 5))
        for base in (0, 20):
            (path / f"{base:020d}.index").write_bytes(b"\x00" * 4096)
            (path / f"{base:020d}.timeindex").write_bytes(b"\x00" * 4092)
        (path / "leader-epoch-checkpoint").write_text("0\n1\n4 0\n")
        (path / "partition.metadata").write_bytes(format_partition_metadata(TOPIC_ID))
    internal = root / "__consumer_offsets-0"
    internal.mkdir()
    (internal / f"{0:020d}.log").write_bytes(batch(0, 1))
    (root / "log-start-offset-checkpoint").write_bytes(format_offsets({TopicPartition("orders", 1): 13}))
    return root


def run(*args: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, args, prog_name="headrace")
    assert result.exit_code == code, (result.output, result.exception)
    return result


def tree(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_adopted_topics_are_served(source: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    before = tree(source)
    result = run("log", "adopt", str(source), "--to", str(data), "-c", "retention.ms=-1", "--json")
    assert [
        (item["partition"], item["log_start_offset"], item["end_offset"])
        for item in json.loads(result.stdout)
    ] == [
        ("orders-0", 0, 25),
        ("orders-1", 13, 25),
    ]
    assert tree(source) == before
    with Cluster(directory=data) as cluster:
        b = ("-b", cluster.bootstrap)
        (described,) = json.loads(run("topic", "describe", "orders", "--json", *b).stdout)
        assert described["topic_id"] == str(TOPIC_ID)
        assert described["configs"] == {"retention.ms": "-1"}
        assert [entry["leader_epoch"] for entry in described["partitions"]] == [5, 5]
        assert run("consume", "orders", "-p", "0", "-e", *b).stdout.split() == [str(n) for n in range(25)]
        assert run("consume", "orders", "-p", "1", "-e", *b).stdout.split() == [str(n) for n in range(13, 25)]
        assert run("consume", "orders", "-p", "0", "-o", "@1700000000022", "-e", *b).stdout.split() == [
            "22",
            "23",
            "24",
        ]
        produced = CliRunner().invoke(cli, ["produce", "orders", "-p", "0", *b], input="new\n")
        assert produced.exit_code == 0
        assert run("consume", "orders", "-p", "0", "-o", "25", "-e", *b).stdout == "new\n"
        assert "__consumer_offsets" not in run("topic", "list", "--internal", *b).stdout
    entries = [
        json.loads(line) for line in run("log", "dump", str(data / "orders-0"), "--json").stdout.splitlines()
    ]
    last = [entry for entry in entries if entry["kind"] == "batch"][-1]
    assert last["base_offset"] == 25
    assert last["producer_id"] > 5000  # an id that the adopted log knows is not given out again


def test_a_directory_that_has_topics_already(source: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Cluster(directory=data) as cluster:
        run("topic", "create", "mine", "-p", "1", "-b", cluster.bootstrap)
        busy = run("log", "adopt", str(source), "--to", str(data), code=1)
        assert "another broker uses this directory" in busy.stderr
    run("log", "adopt", str(source / "orders-0"), str(source / "orders-1"), "--to", str(data))
    again = run("log", "adopt", str(source), "--to", str(data), code=1)
    assert "topic orders is there already" in again.stderr
    with Cluster(directory=data) as cluster:
        names = [
            entry["name"]
            for entry in json.loads(run("topic", "list", "--json", "-b", cluster.bootstrap).stdout)
        ]
        assert names == ["mine", "orders"]


def test_a_torn_tail_is_left_out_and_said(source: Path, tmp_path: Path) -> None:
    with (source / "orders-0" / f"{20:020d}.log").open("ab") as file:
        file.write(bytes(batch(25, 3))[:-4])
    result = run("log", "adopt", str(source), "--to", str(tmp_path / "data"))
    assert "bytes of orders-0 are not whole batches" in result.stderr
    assert result.stdout.splitlines()[1].split()[:3] == ["orders-0", "0", "25"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda root: shutil.rmtree(root / "orders-0"), "not named: orders-0"),
        (
            lambda root: (root / "orders-1" / "partition.metadata").write_bytes(
                format_partition_metadata(uuid.UUID(int=1))
            ),
            "different topic ids",
        ),
        (lambda root: [path.unlink() for path in (root / "orders-0").glob("*.log")], "holds no segment"),
    ],
)
def test_what_cannot_be_adopted(
    source: Path, tmp_path: Path, change: Callable[[Path], object], text: str
) -> None:
    change(source)
    result = run("log", "adopt", str(source), "--to", str(tmp_path / "data"), code=1)
    assert text in result.stderr
    assert not list(tmp_path.glob("data/orders*"))


def test_wrong_arguments(source: Path, tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "holds none" in run("log", "adopt", str(empty), "--to", data, code=1).stderr
    twice = run("log", "adopt", str(source), str(source / "orders-0"), "--to", data, code=1)
    assert "named twice" in twice.stderr
    bad = run("log", "adopt", str(source), "--to", data, "-c", "retentoin.ms=1", code=1)
    assert "did you mean retention.ms" in bad.stderr


def test_a_failure_in_the_middle_leaves_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.broker.storage import adoption

    copy = adoption._copy

    def fail_at_the_second(path: str, target: str) -> None:
        copy(path, target)
        if path.endswith("orders-1"):
            raise OSError(28, "No space left on device", target)

    data = tmp_path / "data"
    monkeypatch.setattr(adoption, "_copy", fail_at_the_second)
    result = run("log", "adopt", str(source), "--to", str(data), code=1)
    assert "No space left on device" in result.stderr
    assert not list(data.glob("orders*"))
    monkeypatch.setattr(adoption, "_copy", copy)
    run("log", "adopt", str(source), "--to", str(data))
