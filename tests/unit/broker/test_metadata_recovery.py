"""A stopped broker's copy of the metadata, read without the broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.broker.storage.metadata_recovery import best_copy, read_copy
from headrace.core.errors import ConfigError, CorruptLog
from headrace.testing.cluster import Cluster
from tests.integration.real_client import create

METADATA = "__cluster_metadata-0"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a broker with two topics leaves behind."""
    directory = tmp_path_factory.mktemp("data")
    with Cluster(directory=directory) as cluster:
        create(cluster.bootstrap, "one")
        create(cluster.bootstrap, "two")
        with pytest.raises(ConfigError, match="is locked"):
            read_copy(str(directory))
    return directory


def copy(data: Path, to: Path, change: bytes = b"", *, cut: int = 0) -> str:
    """The metadata alone, with `change` at its end or without its last bytes."""
    (to / METADATA).mkdir(parents=True)
    (to / "meta.properties").write_text((data / "meta.properties").read_text())
    content = (data / METADATA / f"{0:020d}.log").read_bytes()
    (to / METADATA / f"{0:020d}.log").write_bytes(content[: len(content) - cut] + change)
    return str(to)


def test_a_copy_tells_what_is_in_it(data: Path) -> None:
    found = read_copy(str(data))
    assert found.topics == 2
    assert found.fault is None
    assert found.broker_epoch >= 0
    assert found.cluster_id in (data / "meta.properties").read_text()
    assert b"".join(found.batches) == (data / METADATA / f"{0:020d}.log").read_bytes()


def test_a_damaged_tail_is_told_and_left_out(data: Path, tmp_path: Path) -> None:
    whole = read_copy(str(data))
    torn = read_copy(copy(data, tmp_path / "torn", cut=5))
    assert torn.fault is not None
    assert torn.batches == whole.batches[:-1]
    assert torn.end_offset < whole.end_offset
    again = read_copy(copy(data, tmp_path / "again", whole.batches[0]))
    assert again.fault is not None
    assert "offset 0 follows" in again.fault


def test_the_longest_copy_is_the_best(data: Path, tmp_path: Path) -> None:
    whole = read_copy(str(data))
    torn = read_copy(copy(data, tmp_path / "torn", cut=5))
    assert best_copy([torn, whole]) is whole
    with pytest.raises(ConfigError, match="different clusters"):
        best_copy([whole, whole._replace(cluster_id="other")])


def test_a_directory_without_a_copy_is_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no __cluster_metadata-0"):
        read_copy(str(tmp_path))
    where = copy(data, tmp_path / "nameless")
    (tmp_path / "nameless" / "meta.properties").unlink()
    with pytest.raises(ConfigError, match="names no cluster"):
        read_copy(where)
    size = (data / METADATA / f"{0:020d}.log").stat().st_size
    with pytest.raises(CorruptLog, match="nothing that can be read"):
        read_copy(copy(data, tmp_path / "empty", b"?" * 100, cut=size))
