"""The files that `headrace connect init` writes."""

from __future__ import annotations

from typing import Final

_MODULE: Final = '''\
"""A connector of one's own: numbers, one record each."""

from collections.abc import Iterator

from headrace.connect.api import Position, Record, Settings, Source, Step
from headrace.connect.settings import Kind, Setting

WHERE = {"numbers": "all"}


class Numbers(Source):
    settings = Settings(
        Setting("topic", doc="Where the numbers go."),
        Setting("up.to", Kind.INT, 1000, "How many there are.", least=0),
        Setting("at.a.time", Kind.INT, 100, "How many are one batch.", least=1),
    )

    def plan(self, position: Position) -> Step | None:
        """On the worker: what comes next, and where that leads to. It must be cheap."""
        begin = (position.offset(WHERE) or {"next": 0})["next"]
        end = min(begin + self.config["at.a.time"], self.config["up.to"])
        if begin >= end:
            return None
        return Step(position.moved(WHERE, {"next": end}), parts=[[begin, end]], more=True)

    def read(self, part: list[int]) -> Iterator[Record]:
        """In a Spark task: the records of one part."""
        for number in range(*part):
            yield Record(self.config["topic"], str(number), key=str(number % 10))
'''

_TEST: Final = '''\
"""The connector on a real worker, which is killed in the middle: nothing is lost, nothing is doubled."""

from headrace.testing.connect import Workers


def test_it_survives_its_worker(tmp_path, headrace_cluster):
    entry_points = {"@PROJECT@": "@PACKAGE@:Numbers"}
    with Workers(tmp_path, headrace_cluster.bootstrap, entry_points) as workers:
        workers.put("numbers", {"connector.class": "@PROJECT@", "topic": "numbers", "up.to": "2000"})
        workers.wait_for_records("numbers", 200)
        workers.kill()
        workers.add()
        found = workers.wait_for_records("numbers", 2000)
        assert sorted(int(each.value) for each in found) == list(range(2000))
'''

_PROJECT: Final = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "@PROJECT@"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["headrace[connect]"]

[project.entry-points."headrace.connectors"]
@PROJECT@ = "@PACKAGE@:Numbers"

[tool.hatch.build.targets.wheel]
include = ["@PACKAGE@.py"]

[tool.pytest.ini_options]
pythonpath = ["."]
"""

_CONFIG: Final = """\
{
  "name": "numbers",
  "config": {
    "connector.class": "@PROJECT@",
    "topic": "numbers",
    "up.to": "1000"
  }
}
"""

FILES: Final = {
    "@PACKAGE@.py": _MODULE,
    "test_@PACKAGE@.py": _TEST,
    "pyproject.toml": _PROJECT,
    "numbers.json": _CONFIG,
}
