"""What real processes write, under the umask that most systems have, and under none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from tests.broker_process import HeadraceProcess, Place

EVENT = "log directories are open to other users of this machine"


def with_umask(mask: str) -> Place:
    return Place(prefix=("sh", "-c", f'umask {mask}; exec "$@"', "sh"))


def open_to_others(directory: Path) -> list[str]:
    return [str(path.relative_to(directory)) for path in directory.rglob("*") if path.lstat().st_mode & 0o077]


def run(broker: HeadraceProcess, *words: str, text: bytes | None = None) -> None:
    done = CliRunner().invoke(cli, (*words, "-b", broker.bootstrap), input=text)
    assert done.exit_code == 0, done.output


def warnings(broker: HeadraceProcess) -> list[dict[str, object]]:
    lines = broker.output.read_text().splitlines()
    return [entry for line in lines if EVENT in line and (entry := json.loads(line))["event"] == EVENT]


@pytest.mark.parametrize("mask", ["022", "000"])
def test_a_broker_writes_for_its_user_alone(tmp_path: Path, mask: str) -> None:
    broker = HeadraceProcess(tmp_path / "broker", {"internal.segment.bytes": "4096"}, place=with_umask(mask))
    broker.log_dir = tmp_path / "data" / "deep"
    with broker:
        run(broker, "topic", "create", "t", "-p", "2")
        run(broker, "produce", "t", text=b"".join(b"%d %200d\n" % (n, n) for n in range(200)))
        run(broker, "consume", "t", "-c", "200", "-g", "readers")
    with broker:  # a start after a clean stop writes other files than the first
        run(broker, "topic", "delete", "t")
    written = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert len(written) > 10
    assert open_to_others(tmp_path / "data") == []
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert warnings(broker) == []


def test_a_directory_that_is_open_is_told_of_and_left_alone(tmp_path: Path) -> None:
    broker = HeadraceProcess(tmp_path / "broker", place=with_umask("022"))
    broker.log_dir.mkdir(mode=0o755)
    other = tmp_path / "other dir"
    other.mkdir(mode=0o750)
    broker.properties["log.dirs"] = f"{broker.log_dir},{other}"
    with broker:
        pass
    (warning,) = warnings(broker)
    assert warning["cure"] == f"chmod -R go-rwx {broker.log_dir} '{other}'"
    assert broker.log_dir.stat().st_mode & 0o777 == 0o755
    broker.log_dir.chmod(0o700)
    other.chmod(0o700)
    broker.output.write_text("")
    with broker:
        pass
    assert warnings(broker) == []
