"""A mirror as a connector: what its settings mean, what is said of mistakes, and what of it is told."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.cli.mirror_init import _TEMPLATE
from headrace.client import state_topic
from headrace.client.cluster import Cluster
from headrace.client.transactions import NewProducer
from headrace.connect.api import Turns
from headrace.connect.config import config_of
from headrace.connect.definitions import problems_of, validated
from headrace.connect.plugins import all_settings, described, installed
from headrace.spark.connect.connectors.mirror import MirrorConnector, Told
from headrace.spark.connect.connectors.mirror_settings import mirror_of
from headrace.spark.mirror.config import MirrorConfig, parse
from headrace.spark.mirror.plan import Seen, Step
from headrace.spark.mirror.position import Position, TopicPosition
from headrace.spark.source.plan import View
from tests.unit.connect.memory import Interface

LEAST = {"source.bootstrap.servers": "old:9092", "topics": "orders"}
WORKERS = {"bootstrap.servers": "here:9092", "sasl.mechanism": "PLAIN"}


def _given(**more: str) -> dict[str, str]:
    return {"name": "dr", "connector.class": "mirror", **LEAST, **more}


def _mirror(given: dict[str, str]) -> MirrorConfig:
    return mirror_of(config_of("dr", all_settings(MirrorConnector), given, WORKERS))


def test_it_is_found_by_its_name_and_is_a_source_to_kafka_connect_s_tools() -> None:
    found = installed().find("mirror")
    assert (found.connector, found.kind) == (MirrorConnector, "source")


def test_the_least_that_is_to_be_said_is_a_mirror_to_the_worker_s_cluster() -> None:
    assert problems_of(MirrorConnector, _given()) == {}
    found = _mirror(_given())
    assert found.name == "dr"
    assert dict(found.target) == WORKERS
    assert (found.source.bootstrap, found.tasks, found.trigger_seconds) == ("old:9092", 1, 1.0)
    assert found.targets(["orders", "more"]) == {"orders": "orders"}
    assert (found.groups, found.acls) == (None, None)


def test_every_key_of_the_file_is_section_and_key() -> None:
    """Those of the template, with the lines that are remarks in it, but for what the worker has."""
    text, _, _ = _TEMPLATE.format(name="m").partition("[spark]")
    remarks = re.compile(r"^# (?!name|command_config)(?=\w+ = |\[)", re.MULTILINE)
    file = parse(remarks.sub("", text), Path("m.toml"))
    found = _mirror(
        {
            "name": "other",
            "connector.class": "mirror",
            "source.bootstrap.servers": "127.0.0.1:9092",
            "target.bootstrap.servers": "127.0.0.1:9192",
            "tasks.max": "2",
            "topics.pattern": ".*",
            "topics.exclude": "test-.*",
            "topics.target": "{topic}",
            "mirror.name": "dr",
            "mirror.start": "earliest",
            "mirror.existing": "refuse",
            "mirror.discover": "30s",
            "mirror.max_records_per_batch": "1000000",
            "mirror.compression": "none",
            "mirror.replication_factor": "3",
            "mirror.settings": "true",
            "mirror.group": "mirror-dr",
            "mirror.decisions": "__headrace_sink",
            "groups.patterns": ".*",
            "groups.exclude": "console-consumer-.*",
            "groups.every": "5s",
            "acls.every": "1m",
        }
    )
    assert found == file


@pytest.mark.parametrize(
    ("more", "name", "said"),
    [
        ({"topics": ""}, "topics", "no topic is named"),
        ({"topics": "a,a"}, "topics", "a is named twice"),
        ({"topics.pattern": "("}, "topics.pattern", "topics.pattern: '(' is not a regular expression"),
        ({"topics.pattern": "a.*", "topics.exclude": "b{1,3}"}, "topics.exclude", "commas are between"),
        ({"topics.pattern": "a.*", "topics.target": "all"}, "topics.target", "one topic for many"),
        ({"topics": "a,b", "topics.target": "all"}, "topics.target", "one topic for many"),
        ({"topics.patern": ".*"}, "topics.patern", "did you mean topics.pattern?"),
        ({"mirror.name": "a b"}, "mirror.name", "mirror.name: 'a b': use 1 to 90 letters"),
        ({"mirror.start": "first"}, "mirror.start", "must be one of: earliest, latest"),
        ({"mirror.discover": "often"}, "mirror.discover", "is not a duration"),
        ({"mirror.tasks": "2"}, "mirror.tasks", "it is tasks.max"),
        ({"mirror.trigger": "2s"}, "mirror.trigger", "it is poll.interval.ms"),
        ({"accept-loss": "earliest"}, "accept-loss", "counts for one start"),
        ({"mirror.accept_loss": "earliest"}, "mirror.accept_loss", "headrace mirror run --once"),
        ({"spark.executor.cores": "2"}, "spark.executor.cores", "the session is the worker's"),
        ({"key.converter": "StringConverter"}, "key.converter", "is no setting of a mirror"),
        ({"target.bootstrap.servers": "b:1", "target.no.such": "x"}, "target.bootstrap.servers", "no.such"),
        ({"target.security.protocol": "SSL"}, "target.bootstrap.servers", "a target of its own needs"),
        ({"groups.patterns": "("}, "groups.patterns", "is not a regular expression"),
        ({"acls.every": "now"}, "acls.every", "is not a duration"),
    ],
)
def test_mistakes_are_told_of_their_settings(more: dict[str, str], name: str, said: str) -> None:
    found = problems_of(MirrorConnector, _given(**more))
    assert list(found) == [name]
    assert said in found[name][0]


def test_what_is_no_setting_is_in_the_answer_too() -> None:
    """A plan of `headrace apply` reads the answer, setting by setting."""
    told = validated(described(MirrorConnector, "mirror"), _given(acceptloss="earliest"))
    (found,) = [each for each in told["configs"] if each["value"]["errors"]]
    assert (told["error_count"], found["definition"], found["value"]["name"]) == (1, None, "acceptloss")


def test_secrets_are_not_looked_for_when_it_is_validated() -> None:
    """Another worker may be the one that has them."""
    secret = "${file:/nowhere/at/all:jaas}"
    more = {"source.security.protocol": "SASL_SSL", "source.sasl.jaas.config": secret}
    assert problems_of(MirrorConnector, _given(**more)) == {}
    sent_back = {"source.security.protocol": "SASL_SSL", "source.sasl.jaas.config": "[hidden]"}
    assert problems_of(MirrorConnector, _given(**sent_back)) == {}
    assert problems_of(MirrorConnector, _given(**{"source.command_config": "/nowhere/at/all"})) == {}
    own = {"target.bootstrap.servers": "b:1", "target.command_config": "/nowhere/at/all"}
    assert problems_of(MirrorConnector, _given(**own)) == {}


class _Turns:
    def __init__(self) -> None:
        self.said: list[tuple[str, frozenset[str], str | None]] = []

    def begun(self, topics: frozenset[str], still: str | None = None) -> None:
        self.said.append(("begun", topics, still))

    def alive(self, topics: frozenset[str], still: str | None = None) -> None:
        self.said.append(("alive", topics, still))


def test_what_stands_still_is_told_while_the_rest_goes_on() -> None:
    turns = _Turns()
    config = _mirror(_given(topics="orders,absent"))
    told = Told(cast(Turns, turns), config, lambda text: f"<{text}>")
    other = TopicPosition("id", "eu.other", "there", (0,))
    position = Position(topics={"orders": TopicPosition("id", "eu.orders", "there", (0,)), "other": other})
    mirror: Any = SimpleNamespace(position=position, totals=SimpleNamespace(batches=0))
    seen = Seen(View({}, {}, {"orders": "id"}), {}, {}, {})
    said = "<it stands still\ntopic absent is named, and not there on the source>"
    still, idle = {"orders": "it stands still"}, Step({}, {}, position, {})
    told(mirror, seen, Step({("orders", 0): 0}, {("orders", 0): 5}, position, still))
    mirror.totals.batches = 1
    told(mirror, seen, Step({("orders", 0): 0}, {("orders", 0): 5}, position, still))
    there = Seen(View({}, {}, {"orders": "id", "absent": "id"}), {}, {}, {})
    told(mirror, there, idle)
    told(mirror, there, Step({}, {}, position, {**still, "other": "so does it"}))
    topics = frozenset({"eu.orders", "eu.other"})
    assert turns.said == [("begun", topics, said), ("alive", topics, said), ("alive", topics, None)]


@pytest.fixture
async def rest(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Interface]:
    async def fence(_cluster: Cluster, _transactional_id: str) -> NewProducer:
        return NewProducer(1, 1)

    monkeypatch.setattr(state_topic, "fence", fence)
    made = Interface((MirrorConnector,))
    yield made
    await made.close()


async def test_a_mirror_says_what_to_do_instead(rest: Interface) -> None:
    config = {"source.bootstrap.servers": "old:1", "topics": "orders", "connector.class": "MirrorConnector"}
    assert (await rest.ask("PUT", "/connectors/dr/config", config)).status == 201
    refused = await rest.ask("DELETE", "/connectors/dr/offsets")
    assert "headrace mirror run --once --accept-loss" in refused.document["message"]
    wrong = await rest.ask("PUT", "/connectors/dr/config", {**config, "topics": ""})
    assert (wrong.status, "no topic is named" in wrong.document["message"]) == (400, True)
    plugin = await rest.ask("GET", "/connector-plugins/MirrorConnector/config")
    assert "topics.pattern" in {each["name"] for each in plugin.document}
