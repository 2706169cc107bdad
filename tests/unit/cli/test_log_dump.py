from __future__ import annotations

import json
import struct
import uuid
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.controller.codec import encode_record
from headrace.log import producer_snapshot
from headrace.protocol.compression import Compression
from headrace.protocol.control_records import end_marker
from headrace.protocol.records import NewRecord, encode_batch
from headrace.protocol.stored.topic_record import TopicRecord

BASE = "00000000000000000010"


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    path = tmp_path / "orders-0"
    path.mkdir()
    first = encode_batch(
        [NewRecord(b"v", b"k", 100, (("h", b"x"),)), NewRecord(None, b"\xff", 101)],
        base_offset=10,
        compression=Compression.ZSTD,
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
    )
    second = encode_batch(
        [end_marker(commit=False, coordinator_epoch=3, timestamp=102)],
        base_offset=12,
        producer_id=7,
        producer_epoch=0,
        control=True,
        transactional=True,
    )
    (path / f"{BASE}.log").write_bytes(first + second)
    (path / f"{BASE}.index").write_bytes(struct.pack(">iiii", 2, len(first), 0, 0))
    (path / f"{BASE}.timeindex").write_bytes(struct.pack(">qiqi", 101, 1, 102, 2))
    (path / f"{BASE}.txnindex").write_bytes(struct.pack(">hqqqq", 0, 7, 10, 12, 10))
    entry = producer_snapshot.SnapshotEntry(7, 0, 1, 11, 1, 101, -1, -1)
    (path / f"{BASE}.snapshot").write_bytes(producer_snapshot.encode([entry]))
    return path


def dump(*args: str) -> tuple[int, list[dict[str, object]]]:
    result = CliRunner().invoke(cli, ["log", "dump", "--json", *args])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]


def test_a_directory_is_dumped_whole(partition: Path) -> None:
    code, entries = dump(str(partition), "--records")
    assert code == 0
    kinds = [entry["kind"] for entry in entries]
    assert kinds == [
        "index",
        "batch",
        "record",
        "record",
        "batch",
        "record",
        "producer",
        "timeindex",
        "timeindex",
        "aborted",
    ]
    index, batch, first, second, _, control, producer, time, _, aborted = entries
    assert index["offset"] == 12
    assert (batch["base_offset"], batch["last_offset"], batch["compression"]) == (10, 11, "zstd")
    assert (first["key"], first["value"], first["headers"]) == ("k", "v", [["h", "x"]])
    assert (second["key"], second["value"]) == ("\\xff", None)
    assert (control["control"], control["coordinator_epoch"]) == ("abort", 3)
    assert (producer["producer_id"], producer["last_offset"]) == (7, 11)
    assert (time["timestamp"], time["offset"]) == (101, 11)
    assert aborted["first_offset"] == 10


def test_text_has_a_line_for_each_batch(partition: Path) -> None:
    result = CliRunner().invoke(cli, ["log", "dump", str(partition / f"{BASE}.log")])
    lines = result.stdout.splitlines()
    assert lines[0] == f"== {partition / BASE}.log"
    assert len(lines) == 3
    assert "base_offset=10 last_offset=11 records=2 compression=zstd" in lines[1]
    with_records = CliRunner().invoke(cli, ["log", "dump", "--records", str(partition / f"{BASE}.log")])
    assert "  offset=11 timestamp=101 key=\\xff value=null headers=[]" in with_records.stdout


def test_a_broken_batch_ends_the_file_with_exit_code_1(partition: Path) -> None:
    path = partition / f"{BASE}.log"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    code, entries = dump(str(path))
    assert code == 1
    assert [entry["kind"] for entry in entries] == ["batch", "fault"]
    assert "checksum" in str(entries[1]["error"])


def test_broken_indexes_and_snapshots(partition: Path) -> None:
    (partition / f"{BASE}.index").write_bytes(struct.pack(">iiii", 5, 100, 3, 200))
    assert dump(str(partition / f"{BASE}.index"))[0] == 1
    (partition / f"{BASE}.timeindex").write_bytes(struct.pack(">qiqi", 101, 1, 50, 2))
    assert dump(str(partition / f"{BASE}.timeindex"))[0] == 1
    (partition / f"{BASE}.snapshot").write_bytes(b"\x00\x01nonsense")
    assert dump(str(partition / f"{BASE}.snapshot"))[0] == 1


def test_metadata_records_are_decoded(tmp_path: Path) -> None:
    path = tmp_path / "__cluster_metadata-0"
    path.mkdir()
    topic_id = uuid.UUID(int=5)
    record = NewRecord(encode_record(TopicRecord(name="orders", topic_id=topic_id)), None, 1)
    (path / "00000000000000000000.log").write_bytes(encode_batch([record, NewRecord(b"\xff\xff", None, 1)]))
    code, entries = dump(str(path), "--records")
    assert code == 0
    assert entries[1]["type"] == "TopicRecord"
    assert entries[1]["data"] == {"name": "orders", "topic_id": str(topic_id)}
    assert entries[2]["type"] == "broken"


def test_empty_files_and_wrong_ones(tmp_path: Path) -> None:
    empty = tmp_path / f"{BASE}.log"
    empty.write_bytes(b"")
    assert dump(str(empty)) == (0, [])
    other = tmp_path / "notes.txt"
    other.write_text("x")
    assert dump(str(other))[0] == 1
    lonely = tmp_path / "empty"
    lonely.mkdir()
    assert dump(str(lonely))[0] == 1
    renamed = tmp_path / "renamed.index"
    renamed.write_bytes(b"\x00" * 8)
    assert dump(str(renamed))[0] == 1
