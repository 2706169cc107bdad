"""`headrace apply` beside a registry and a worker that are processes: what it made, other clients find."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from click.testing import CliRunner, Result
from confluent_kafka.admin import AdminClient
from confluent_kafka.schema_registry import SchemaRegistryClient

from headrace.cli.main import cli
from tests.broker_process import BrokerProcess
from tests.registry.idle_worker import idle_worker
from tests.registry.registry_process import RegistryProcess

SECONDS = 240.0
RECORD = '{"type": "record", "name": "O", "fields": [{"name": "id", "type": "long"}]}'
GROWN = RECORD.replace("]}", ', {"name": "n", "type": "int", "default": 0}]}')
CLASHING = RECORD.replace('"long"', '"string"')


class Scene:
    def __init__(self, brokers: str, registry: RegistryProcess, worker: str, file: Path, name: str) -> None:
        self.brokers, self.registry, self.worker, self.name = brokers, registry, worker, name
        self._file = file

    def write(
        self, schema: str, *, level: str = "", connector: str = "topic: a", prune: bool = False
    ) -> Self:
        compatibility = f"compatibility: {level}, " if level else ""
        self._file.write_text(
            f"prune: {str(prune).lower()}\n"
            f"owns: {{topics: ['{self.name}*'], schemas: ['{self.name}*'], connectors: ['{self.name}*']}}\n"
            f"topics: {{{self.name}: {{partitions: 2, replicas: 1}}}}\n"
            f"schemas: {{{self.name}-value: {{{compatibility}schema: {json.dumps(schema)}}}}}\n"
            f"connectors: {{{self.name}-in: {{connector.class: WellSource, {connector}}}}}\n"
        )
        return self

    def write_nothing(self) -> Self:
        owned = f"['{self.name}*']"
        self._file.write_text(
            f"prune: true\nowns: {{topics: {owned}, schemas: {owned}, connectors: {owned}}}\n"
            "topics: {}\nschemas: {}\nconnectors: {}\n"
        )
        return self

    def apply(self, *options: str, code: int = 0) -> Result:
        services = ("--registry", self.registry.url, "--connect", self.worker)
        words = ("apply", "-f", str(self._file), "-b", self.brokers, *services, *options)
        found = CliRunner().invoke(cli, words, prog_name="headrace")
        assert found.exit_code == code, (found.output, found.exception)
        return found

    def connector(self) -> Any:
        """Its settings as the worker tells them; None where there is none."""
        try:
            with urllib.request.urlopen(f"{self.worker}/connectors/{self.name}-in/config") as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                if error.code != 404:
                    raise
            return None


@pytest.fixture(scope="module")
def worker(headrace: BrokerProcess) -> Iterator[str]:
    with idle_worker(headrace.bootstrap) as url:
        until_ready(url)
        yield url


def until_ready(url: str) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            with urllib.request.urlopen(f"{url}/health"):
                return
        except OSError:
            assert time.monotonic() < deadline, "the worker does not get ready"
            time.sleep(0.1)


@pytest.fixture
def scene(
    headrace: BrokerProcess, worker: str, tmp_path: Path, new_name: Callable[[], str]
) -> Iterator[Scene]:
    name = new_name()
    with RegistryProcess(tmp_path, headrace.bootstrap, f"schemas-{name}") as registry:
        yield Scene(headrace.bootstrap, registry, worker, tmp_path / "cluster.yaml", name)


def test_what_a_file_says_others_find_and_what_it_says_no_more_is_gone(scene: Scene) -> None:
    found = json.loads(scene.write(RECORD, level="FULL").apply("--check", "--json", code=2).stdout)
    assert [each["kind"] for each in found["changes"]] == ["topic", "schema", "connector"]
    assert scene.connector() is None, "a check makes nothing"
    scene.apply("--yes")
    subject = f"{scene.name}-value"
    with SchemaRegistryClient({"url": scene.registry.url}) as client:
        assert client.get_compatibility(subject) == "FULL"
        assert json.loads(client.get_latest_version(subject).schema.schema_str) == json.loads(RECORD)
        assert scene.connector()["topic"] == "a"
        brokers = AdminClient({"bootstrap.servers": scene.brokers})
        assert len(brokers.list_topics(scene.name, SECONDS).topics[scene.name].partitions) == 2
        assert "nothing to change" in scene.apply("--check").stderr

        scene.write(GROWN, connector="topic: b, depth: 7").apply("--yes")
        assert client.get_versions(subject) == [1, 2]
        assert (scene.connector()["topic"], scene.connector()["depth"]) == ("b", "7")
        with pytest.raises(Exception, match="does not have subject-level compatibility"):
            client.get_compatibility(subject)
        assert "nothing to change" in scene.apply("--check").stderr

        refused = scene.write(CLASHING, connector="topic: c, depth: 0").apply("--yes", code=1)
        assert f"schema {subject}" in refused.stderr
        assert f"connector {scene.name}-in" in refused.stderr
        assert client.get_versions(subject) == [1, 2], "a plan with an error changes nothing"
        assert scene.connector()["topic"] == "b"

        scene.write_nothing().apply("--yes")
        assert scene.connector() is not None, "one word is not enough"
        scene.apply("--yes", "--prune")
        assert (client.get_subjects(), scene.connector()) == ([], None)
        assert scene.name not in brokers.list_topics(timeout=SECONDS).topics


def test_without_its_registry_it_changes_nothing_and_goes_on_when_it_is_back(scene: Scene) -> None:
    scene.write(RECORD, level="FULL").apply("--yes")
    scene.registry.kill()
    said = scene.write(GROWN, level="FULL", connector="topic: b").apply("--yes", code=1)
    assert "no registry answers" in said.stderr
    assert scene.connector()["topic"] == "a"
    scene.registry.start()
    scene.apply("--yes")
    assert scene.connector()["topic"] == "b"
    with SchemaRegistryClient({"url": scene.registry.url}) as client:
        assert client.get_versions(f"{scene.name}-value") == [1, 2]
    assert "nothing to change" in scene.apply("--check").stderr
