"""The ZooKeeper that we start ourselves: what is found, what is kept, and that nothing is left running."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from headrace.core.ids import BrokerId
from headrace.testing.zookeeper import ZooKeeper, ZooKeeperFailed
from headrace.testing.zookeeper_jars import JARS, ZooKeeperMissing, find_classpath, find_java
from tests.integration.zookeeper_processes import connected
from tests.unit.coordination.worlds import batch
from tests.zookeeper_server import zookeeper_at

ONE = BrokerId(1)


async def test_an_ensemble_that_is_stopped_and_started_has_its_data(tmp_path: Path) -> None:
    zookeeper = zookeeper_at(tmp_path, servers=3)
    with zookeeper:
        pids = [node.pid for node in zookeeper.nodes]
        async with connected(zookeeper.connect + "/kept") as port:
            epoch = await port.claim_controller(ONE)
            await port.append(0, batch(0, b"a", epoch=epoch), epoch)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    # The ports are others, the directory is the same.
    with zookeeper_at(tmp_path, servers=3) as again:
        async with connected(again.connect + "/kept") as port:
            assert await port.end() == 1
            assert await port.claim_controller(ONE) == epoch + 1


def test_a_paused_server_can_be_stopped(tmp_path: Path) -> None:
    with zookeeper_at(tmp_path) as zookeeper:
        (node,) = zookeeper.nodes
        assert node.ask("ruok") == "imok"
        assert node.mode() == "standalone"
        pid = node.pid
        node.pause()
        assert not node.serves(timeout=0.3)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    find_java_or_skip()
    zookeeper = ZooKeeper(tmp_path, classpath=str(tmp_path))
    with pytest.raises(ZooKeeperFailed, match=r"has ended: see .*server\.log; it ends with"):
        zookeeper.start()
    assert not any(node.running for node in zookeeper.nodes)


def find_java_or_skip() -> None:
    try:
        find_java()
    except ZooKeeperMissing as error:
        pytest.skip(str(error))


def test_where_jars_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)  # another test may have imported the real one
    brought = tmp_path / "brought"
    brought.mkdir()
    monkeypatch.setenv(JARS.variable, str(brought))
    cache, jars = tmp_path / "cache", tmp_path / "site" / "pyspark" / "jars"
    cache.mkdir()
    jars.mkdir(parents=True)
    (jars.parent / "__init__.py").write_text("raise RuntimeError('imported')\n")
    for name in ("zookeeper-3.9.3.jar", "zookeeper-jute-3.9.3.jar", "slf4j-api-2.0.jar", "spark-core.jar"):
        (jars / name).touch()
    of_pyspark = find_classpath(cache, {}).split(os.pathsep)
    assert [Path(jar).name for jar in of_pyspark] == [
        "slf4j-api-2.0.jar",
        "zookeeper-3.9.3.jar",
        "zookeeper-jute-3.9.3.jar",
    ]
    for jar in JARS.needed():
        (brought / jar.file_name).touch()
    assert find_classpath(cache, {}, for_tls=True) == str(brought / "*")
    (cache / "zookeeper-3.9.4.jar").touch()
    assert find_classpath(cache, {}) == str(cache / "*")
    assert find_classpath(cache, {"HEADRACE_ZOOKEEPER_CLASSPATH": "/a:/b"}) == "/a:/b"


def test_what_to_do_is_said_where_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv(JARS.variable, str(tmp_path))
    with pytest.raises(ZooKeeperMissing, match=r"headrace zookeeper jars.*pyspark.*--zookeeper HOST:PORT"):
        find_classpath(tmp_path, {})
    with pytest.raises(ZooKeeperMissing, match="install a Java runtime"):
        find_java({"PATH": str(tmp_path)})
