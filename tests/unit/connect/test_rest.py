"""REST over real stores in memory. What Apache's worker answers to the same was looked at and is expected."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from headrace.client import state_topic
from headrace.client.cluster import Cluster
from headrace.client.transactions import NewProducer
from headrace.connect import operations
from headrace.connect.position import NOWHERE
from headrace.connect.statuses import State, topic_pair
from tests.unit.connect.memory import Interface

WELL = {"connector.class": "WellSource", "topic": "t"}


@pytest.fixture
async def rest(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Interface]:
    epochs = iter(range(100))

    async def fence(_cluster: Cluster, _transactional_id: str) -> NewProducer:
        return NewProducer(1, next(epochs))

    monkeypatch.setattr(state_topic, "fence", fence)
    made = Interface()
    yield made
    await made.close()


async def _create(rest: Interface, name: str = "w", config: dict[str, Any] | None = None) -> None:
    assert (await rest.ask("PUT", f"/connectors/{name}/config", config or WELL)).status == 201


async def _with_tasks(rest: Interface, name: str = "w", count: int = 1) -> None:
    wanted = rest.configs.state.find(name)
    assert wanted is not None
    tasks = [dict(wanted.properties)] * count
    await rest.configs.write(lambda state: (operations.set_tasks(state, wanted, tasks), None))


async def test_a_connector_is_made_once(rest: Interface) -> None:
    made = await rest.ask("POST", "/connectors", {"name": "w", "config": WELL})
    expected = {"name": "w", "config": {**WELL, "name": "w"}, "tasks": [], "type": "source"}
    assert (made.status, made.document) == (201, expected)
    assert made.headers["location"] == "http://worker:8083/connectors/w"
    again = await rest.ask("POST", "/connectors", {"name": "w", "config": WELL})
    assert (again.status, again.document) == (
        409, {"error_code": 409, "message": "Connector w already exists"},
    )  # fmt: skip
    assert (await rest.ask("GET", "/connectors")).document == ["w"]


@pytest.mark.parametrize(
    ("document", "status", "text"),
    [
        ({"name": "w", "config": {"connector.class": "Nope"}}, 400, "Failed to find any class"),
        ({"name": "w", "config": {}}, 400, "contains no connector type"),
        (
            {"name": "w", "config": {"connector.class": "WellSource"}},
            400,
            'configuration "topic" which has no',
        ),
        ({"name": "w", "config": {**WELL, "tasks.max": "x"}}, 400, "Not a number of type INT"),
        ({"name": "w", "config": {**WELL, "name": "v"}}, 400, "doesn't match connector name in the URL"),
        ({"config": WELL}, 400, "String may not be empty"),
        ({"name": "w\nv", "config": WELL}, 400, "String may not have control characters"),
        ({"name": "\ud800", "config": WELL}, 500, "surrogates not allowed"),
        ({"name": "w", "config": WELL, "initial_state": "ODD"}, 500, "initial_state is one of"),
        ({"name": "w", "konfig": {}}, 500, "konfig"),
        ({"name": "t", "config": {"connector.class": "TankSink"}}, 400, "one of topics or topics.regex"),
    ],
)
async def test_mistakes_are_told(rest: Interface, document: object, status: int, text: str) -> None:
    found = await rest.ask("POST", "/connectors", document)
    assert (found.status, found.document["error_code"]) == (status, status)
    assert text in found.document["message"]
    assert (await rest.ask("GET", "/connectors")).document == []


async def test_what_is_no_json_is_told(rest: Interface) -> None:
    assert (await rest.ask("POST", "/connectors", body=b"nojson")).status == 500


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("GET", "/connectors/x", 404, "Connector x not found"),
        ("GET", "/connectors/x/config", 404, "Connector x not found"),
        ("GET", "/connectors/x/status", 404, "No status found for connector x"),
        ("GET", "/connectors/x/tasks", 404, "Connector x not found"),
        ("GET", "/connectors/x/tasks/0/status", 404, "No status found for task x-0"),
        ("GET", "/connectors/x/offsets", 404, "Connector x not found"),
        ("DELETE", "/connectors/x/offsets", 404, "Connector x not found"),
        ("PUT", "/connectors/x/pause", 404, "Unknown connector x"),
        ("PUT", "/connectors/x/stop", 404, "Unknown connector x"),
        ("POST", "/connectors/x/restart", 404, "Unknown connector: x"),
        ("POST", "/connectors/x/tasks/0/restart", 404, "Unknown connector: x"),
        ("DELETE", "/connectors/x", 404, "Connector x not found"),
        ("GET", "/connector-plugins/X/config", 404, "Unknown plugin X."),
        ("GET", "/admin/loggers/nobody.of.us", 404, "Logger nobody.of.us not found."),
        ("GET", "/nothing", 404, "HTTP 404 Not Found"),
        ("POST", "/connectors/x", 405, "HTTP 405 Method Not Allowed"),
        ("DELETE", "/connectors", 405, "HTTP 405 Method Not Allowed"),
    ],
)
async def test_what_is_not_there(rest: Interface, method: str, path: str, status: int, message: str) -> None:
    found = await rest.ask(method, path)
    assert (found.status, found.document) == (status, {"error_code": status, "message": message})


async def test_a_configuration_is_put_and_patched(rest: Interface) -> None:
    await _create(rest)
    changed = await rest.ask("PUT", "/connectors/w/config", {**WELL, "depth": "9"})
    assert (changed.status, changed.document["config"]["depth"]) == (200, "9")
    patched = await rest.ask("PATCH", "/connectors/w/config", {"topic": "u", "depth": None})
    assert patched.document["config"] == {"connector.class": "WellSource", "topic": "u", "name": "w"}
    refused = await rest.ask("PATCH", "/connectors/w/config", {"depth": "0"})
    assert (refused.status, "at least 1" in refused.document["message"]) == (400, True)
    assert (await rest.ask("GET", "/connectors/w/config")).document["topic"] == "u"


async def test_everything_of_all_connectors_is_one_request(rest: Interface) -> None:
    await _create(rest)
    await _create(rest, "v")
    await _with_tasks(rest)
    rest.say("w", State.RUNNING, 1)
    found = (await rest.ask("GET", "/connectors?expand=info&expand=status")).document
    assert found == {
        "w": {
            "info": {
                "name": "w",
                "config": {**WELL, "name": "w"},
                "tasks": [{"connector": "w", "task": 0}],
                "type": "source",
            },
            "status": {
                "name": "w",
                "connector": {"state": "RUNNING", "worker_id": "worker:8083", "version": "7"},
                "tasks": [{"id": 0, "state": "RUNNING", "worker_id": "worker:8083", "version": "7"}],
                "type": "source",
            },
        }
    }
    assert (await rest.ask("GET", "/connectors?expand=other")).document == {"w": {}, "v": {}}


async def test_tasks_have_the_configuration_of_their_connector(rest: Interface) -> None:
    await _create(rest)
    await _with_tasks(rest)
    (task,) = (await rest.ask("GET", "/connectors/w/tasks")).document
    assert task == {"id": {"connector": "w", "task": 0}, "config": {**WELL, "name": "w"}}


@pytest.mark.parametrize(("verb", "status"), [("pause", 202), ("resume", 202), ("stop", 204)])
async def test_targets_are_set(rest: Interface, verb: str, status: int) -> None:
    await _create(rest)
    for _ in range(2):
        found = await rest.ask("PUT", f"/connectors/w/{verb}")
        assert (found.status, found.document) == (status, None)


async def test_a_restart_tells_what_it_restarts(rest: Interface) -> None:
    await _create(rest)
    await _with_tasks(rest)
    rest.say("w", State.RUNNING, 1)
    assert (await rest.ask("POST", "/connectors/w/restart")).status == 204
    planned = await rest.ask("POST", "/connectors/w/restart?includeTasks=true")
    states = [planned.document["connector"]["state"], planned.document["tasks"][0]["state"]]
    assert (planned.status, states) == (202, ["RESTARTING", "RESTARTING"])
    well = await rest.ask("POST", "/connectors/w/restart?includeTasks=true&onlyFailed=true")
    assert well.document["tasks"][0]["state"] == "RUNNING"
    assert (await rest.ask("POST", "/connectors/w/tasks/0/restart")).status == 204
    assert (await rest.ask("POST", "/connectors/w/tasks/5/restart")).document[
        "message"
    ] == "Unknown task: w-5"


async def test_one_that_is_to_go_on_has_its_offsets_left_alone(rest: Interface) -> None:
    await _create(rest)
    rest.say("w", State.STOPPED)
    assert (await rest.ask("DELETE", "/connectors/w/offsets")).status == 400, "it is about to start"


async def test_why_something_failed_is_told(rest: Interface) -> None:
    await _create(rest)
    await _with_tasks(rest)
    rest.say("w", State.FAILED, 1, "the well is dry")
    found = (await rest.ask("GET", "/connectors/w/tasks/0/status")).document
    assert found == {
        "id": 0, "state": "FAILED", "worker_id": "worker:8083", "trace": "the well is dry", "version": "7",
    }  # fmt: skip


async def test_offsets_are_changed_only_while_it_is_stopped(rest: Interface) -> None:
    await _create(rest)
    rest.say("w", State.RUNNING)
    change = {"offsets": [{"partition": {"well": 1}, "offset": {"litres": 3}}]}
    refused = await rest.ask("PATCH", "/connectors/w/offsets", change)
    assert (refused.status, "must be in the STOPPED state" in refused.document["message"]) == (400, True)
    await rest.ask("PUT", "/connectors/w/stop")
    assert (await rest.ask("PATCH", "/connectors/w/offsets", change)).status == 400, "it runs still"
    rest.say("w", State.STOPPED)
    altered = await rest.ask("PATCH", "/connectors/w/offsets", change)
    assert altered.document == {"message": "The offsets for this connector have been altered successfully"}
    assert (await rest.ask("GET", "/connectors/w/offsets")).document == change
    assert (await rest.ask("PATCH", "/connectors/w/offsets", {"offsets": []})).status == 400
    reset = await rest.ask("DELETE", "/connectors/w/offsets")
    assert reset.document == {"message": "The offsets for this connector have been reset successfully"}
    assert rest.runner.positions["w"] == NOWHERE


@pytest.mark.parametrize(
    ("partition", "offset", "text"),
    [
        ({"kafka_topic": "t"}, {"kafka_offset": 1}, "'kafka_topic' and 'kafka_partition'"),
        ({"kafka_topic": "t", "kafka_partition": 0}, {}, "'kafka_offset'"),
        ({"kafka_topic": "t", "kafka_partition": "x"}, {"kafka_offset": 1}, "numbers"),
    ],
)
async def test_offsets_of_a_sink_are_those_of_topics(
    rest: Interface, partition: object, offset: object, text: str
) -> None:
    await _create(rest, "t", {"connector.class": "TankSink", "topics": "t"})
    await rest.ask("PUT", "/connectors/t/stop")
    rest.say("t", State.STOPPED)
    document = {"offsets": [{"partition": partition, "offset": offset}]}
    found = await rest.ask("PATCH", "/connectors/t/offsets", document)
    assert (found.status, text in found.document["message"]) == (400, True)


async def test_secrets_are_in_no_answer_and_come_back_as_they_were(rest: Interface) -> None:
    made = await rest.ask("PUT", "/connectors/w/config", {**WELL, "pin": "hunter22"})
    await _with_tasks(rest)
    rest.say("w", State.RUNNING, 1)
    paths = ["/connectors/w", "/connectors/w/config", "/connectors/w/tasks", "/connectors?expand=info"]
    found = [made, *[await rest.ask("GET", path) for path in paths]]
    found.append(
        await rest.ask("PUT", "/connector-plugins/WellSource/config/validate", {**WELL, "pin": "hunter22"})
    )
    assert "hunter22" not in str([each.document for each in found])
    shown = (await rest.ask("GET", "/connectors/w/config")).document
    assert shown["pin"] == "[hidden]"
    await rest.ask("PUT", "/connectors/w/config", {**shown, "depth": "6"})
    wanted = rest.configs.state.find("w")
    assert wanted is not None
    assert (wanted.properties["pin"], wanted.properties["depth"]) == ("hunter22", "6")


async def test_plugins_and_their_settings(rest: Interface) -> None:
    plugins = (await rest.ask("GET", "/connector-plugins")).document
    assert plugins[1] == {"class": "tests.unit.connect.memory.WellSource", "type": "source", "version": "7"}
    settings = (await rest.ask("GET", "/connector-plugins/WellSource/config")).document
    assert [each["name"] for each in settings][:4] == ["topic", "depth", "pin", "name"]
    assert settings[1] == {
        "name": "depth", "type": "INT", "required": False, "default_value": "5", "importance": "MEDIUM",
        "documentation": "", "group": None, "order_in_group": -1, "width": "NONE", "display_name": "depth",
        "dependents": [],
    }  # fmt: skip


async def test_validation_tells_all_that_is_wrong(rest: Interface) -> None:
    path = "/connector-plugins/WellSource/config/validate"
    found = (await rest.ask("PUT", path, {"connector.class": "WellSource", "tasks.max": "x"})).document
    wrong = {
        each["value"]["name"]: each["value"]["errors"] for each in found["configs"] if each["value"]["errors"]
    }
    assert wrong == {
        "name": ['Missing required configuration "name" which has no default value.'],
        "topic": ['Missing required configuration "topic" which has no default value.'],
        "tasks.max": [
            "Invalid value x for configuration tasks.max: Not a number of type INT",
            "Invalid value null for configuration tasks.max: Value must be non-null",
        ],
    }
    assert found["error_count"] == 4
    assert found["groups"] == ["Common", "Error Handling"]
    other = await rest.ask("PUT", path, {"connector.class": "TankSink"})
    assert (
        other.document["message"] == "Included connector type TankSink does not match request type WellSource"
    )


async def test_topics_are_told_and_forgotten(rest: Interface) -> None:
    await _create(rest)
    rest.statuses.state.replay(*topic_pair("t", "w", 0, 1))
    assert (await rest.ask("GET", "/connectors/w/topics")).document == {"w": {"topics": ["t"]}}
    assert (await rest.ask("PUT", "/connectors/w/topics/reset")).status == 202
    assert (await rest.ask("GET", "/connectors/w/topics")).document == {"w": {"topics": []}}


async def test_a_name_may_hold_a_slash(rest: Interface) -> None:
    made = await rest.ask("POST", "/connectors", {"name": "a b/ö", "config": WELL})
    assert made.status == 201
    assert (await rest.ask("GET", "/connectors/a%20b%2F%C3%B6")).document["name"] == "a b/ö"


async def test_levels_of_loggers(rest: Interface) -> None:
    name = "headrace.connect.some.logger"
    assert (await rest.ask("PUT", f"/admin/loggers/{name}", {"level": "WARN"})).document == [name]
    found = (await rest.ask("GET", f"/admin/loggers/{name}")).document
    assert (found["level"], found["last_modified"] > 0) == ("WARN", True)
    assert (await rest.ask("PUT", f"/admin/loggers/{name}", {"level": "LOUD"})).status == 404
    assert (await rest.ask("PUT", f"/admin/loggers/{name}", {})).status == 400
    everywhere = await rest.ask("PUT", f"/admin/loggers/{name}?scope=cluster", {"level": "INFO"})
    assert everywhere.status == 204
    assert (await rest.ask("GET", "/")).document["kafka_cluster_id"] == "cluster"
    assert (await rest.ask("GET", "/health")).document["status"] == "healthy"
