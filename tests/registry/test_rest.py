"""The REST interface itself: status, error codes, content types, and what each path answers."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.registry.evolution.case import Case
from tests.registry.evolution_cases import CASES
from tests.registry.registry_process import RegistryProcess

_INT, _LONG, _STRING = ('"int"', '"long"', '"string"')
_DELETE, _PUT, _POST = ("DELETE", "PUT", "POST")


@pytest.fixture
def subject(new_name: Callable[[], str]) -> str:
    return new_name()


def test_versions_and_ids(shared_registry: RegistryProcess, subject: str) -> None:
    registry = shared_registry
    first = registry.register(subject, _INT)
    assert first.status == 200
    assert registry.register(subject, '"int" ').body == first.body
    second = registry.register(subject, _LONG)
    assert second.body["id"] > first.body["id"]
    assert registry.get(f"/subjects/{subject}/versions").body == [1, 2]
    shown = registry.get(f"/subjects/{subject}/versions/1").body
    assert (shown["subject"], shown["version"], shown["schema"]) == (subject, 1, _INT)
    assert registry.get(f"/subjects/{subject}/versions/latest").body["version"] == 2
    assert registry.get(f"/subjects/{subject}/versions/-1").body["version"] == 2
    assert registry.get(f"/subjects/{subject}/versions/2/schema").body == "long"
    assert registry.get(f"/schemas/ids/{second.body['id']}").body["schema"] == _LONG
    assert {"subject": subject, "version": 2} in registry.get(
        f"/schemas/ids/{second.body['id']}/versions"
    ).body
    assert subject in registry.get("/subjects").body
    assert registry.get(f"/subjects?subjectPrefix={subject}").body == [subject]


def test_one_schema_has_one_id(shared_registry: RegistryProcess, new_name: Callable[[], str]) -> None:
    here, there = new_name(), new_name()
    schema = {"type": "record", "name": here.replace("-", "_"), "fields": []}
    number = shared_registry.register(here, schema).body["id"]
    assert shared_registry.register(there, schema).body["id"] == number
    assert shared_registry.get(f"/schemas/ids/{number}/subjects").body == sorted([here, there])
    guid = shared_registry.get(f"/schemas/ids/{number}").body["guid"]
    assert shared_registry.get(f"/schemas/guids/{guid}").body["id"] == number


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/subjects/none/versions", None, 404, 40401),
        ("GET", "/subjects/none/versions/1", None, 404, 40401),
        ("GET", "/subjects/{subject}/versions/9", None, 404, 40402),
        ("GET", "/subjects/{subject}/versions/0", None, 422, 42202),
        ("GET", "/subjects/{subject}/versions/x", None, 422, 42202),
        ("GET", "/schemas/ids/999999", None, 404, 40403),
        ("GET", "/schemas/ids/999999/versions", None, 404, 40403),
        ("POST", "/subjects/none", {"schema": _INT}, 404, 40401),
        ("POST", "/subjects/{subject}", {"schema": '"bytes"'}, 404, 40403),
        ("POST", "/subjects/{subject}/versions", {"schema": '{"type": "nonsense"}'}, 422, 42201),
        ("POST", "/subjects/{subject}/versions", {"schema": ""}, 422, 42201),
        ("POST", "/subjects/{subject}/versions", {"schema": _INT, "schemaType": "XML"}, 422, 42201),
        ("POST", "/subjects/{subject}/versions", {"schema": "{", "schemaType": "JSON"}, 422, 42201),
        ("POST", "/subjects/{subject}/versions", {"schema": '{"type": 3}', "schemaType": "JSON"}, 422, 42201),
        (
            "POST",
            "/subjects/{subject}/versions",
            {"schema": "message {", "schemaType": "PROTOBUF"},
            422,
            42201,
        ),
        ("POST", "/subjects/{subject}/versions", {"schema": "AAAA", "schemaType": "PROTOBUF"}, 422, 42201),
        ("POST", "/subjects/{subject}/versions", {"schema": '"string"'}, 409, 40901),
        ("POST", "/subjects/{subject}/versions", {"schema": _LONG, "id": 7}, 422, 42205),
        ("POST", "/subjects/%20/versions", {"schema": _INT}, 422, 42208),
        ("POST", "/subjects/{subject}/versions", b"not json", 400, 400),
        ("POST", "/subjects/{subject}/versions", [], 400, 400),
        ("POST", "/compatibility/subjects/{subject}/versions/9", {"schema": _INT}, 404, 40402),
        ("PUT", "/config", {"compatibility": "SOME"}, 422, 42203),
        ("PUT", "/config/{subject}", {}, 422, 42203),
        ("GET", "/config/none", None, 404, 40408),
        ("DELETE", "/config/none", None, 404, 40401),
        ("PUT", "/mode/{subject}", {"mode": "SOME"}, 422, 42204),
        ("PUT", "/mode/{subject}", {"mode": "IMPORT"}, 422, 42205),
        ("GET", "/mode/none", None, 404, 40409),
        ("DELETE", "/subjects/none", None, 404, 40401),
        ("DELETE", "/subjects/{subject}?permanent=true", None, 404, 40405),
        ("DELETE", "/subjects/{subject}/versions/1?permanent=true", None, 404, 40407),
        ("GET", "/nothing/here", None, 404, 404),
        ("PATCH", "/subjects", None, 405, 405),
    ],
)
def test_errors(
    shared_registry: RegistryProcess,
    subject: str,
    method: str,
    path: str,
    body: object,
    status: int,
    code: int,
) -> None:
    assert shared_registry.register(subject, _INT).status == 200
    answer = shared_registry.ask(method, path.format(subject=subject), body)
    assert (answer.status, answer.code) == (status, code), answer.body
    assert answer.body["message"]


def test_content_types(shared_registry: RegistryProcess, subject: str) -> None:
    assert shared_registry.get("/subjects").content_type == "application/vnd.schemaregistry.v1+json"
    assert shared_registry.get("/subjects", Accept="application/json").content_type == "application/json"
    wanted = "text/html, application/vnd.schemaregistry+json; q=0.9"
    assert (
        shared_registry.get("/subjects", Accept=wanted).content_type == "application/vnd.schemaregistry+json"
    )
    path = f"/subjects/{subject}/versions"
    for kind, status in (("application/json; charset=utf-8", 200), ("text/plain", 415)):
        answer = shared_registry.ask(_POST, path, {"schema": _INT}, {"Content-Type": kind})
        assert answer.status == status


def test_too_large(shared_registry: RegistryProcess, subject: str) -> None:
    """More than the topic takes, and more than anybody reads."""
    schema = {"type": "record", "name": "R", "fields": [], "doc": "x" * 1_500_000}
    assert shared_registry.register(subject, schema).code == 42209
    assert shared_registry.register(subject, _INT).status == 200
    answer = shared_registry.ask(_POST, f"/subjects/{subject}/versions", b" " * (17 * 1024 * 1024))
    assert answer.status == 413


def test_subjects_of_any_name(shared_registry: RegistryProcess, subject: str) -> None:
    name = f"{subject}/with a slash+ä%2F?"
    assert shared_registry.register(name, _INT).status == 200
    assert name in shared_registry.get("/subjects").body


def test_deletion(shared_registry: RegistryProcess, subject: str) -> None:
    registry = shared_registry
    path = f"/subjects/{subject}"
    number = registry.register(subject, _INT).body["id"]
    registry.register(subject, _LONG)
    registry.ask(_PUT, f"/config/{subject}", {"compatibility": "FULL"})
    assert registry.ask(_DELETE, f"{path}/versions/1").body == 1
    assert registry.ask(_DELETE, f"{path}/versions/1").code == 40406
    assert registry.get(f"{path}/versions").body == [2]
    assert registry.get(f"{path}/versions?deleted=true").body == [1, 2]
    assert registry.get(f"{path}/versions/1").code == 40402
    assert registry.get(f"{path}/versions/1?deleted=true").body["id"] == number
    assert registry.get(f"/schemas/ids/{number}").status == 200
    assert registry.ask(_DELETE, f"{path}/versions/1?permanent=true").body == 1
    assert registry.get(f"{path}/versions?deleted=true").body == [2]
    assert registry.ask(_DELETE, path).body == [2]
    assert registry.ask(_DELETE, path).code == 40404
    assert registry.get(f"{path}/versions").code == 40401
    assert registry.get(f"/config/{subject}").code == 40408
    assert subject not in registry.get("/subjects").body
    assert subject in registry.get("/subjects?deleted=true").body
    # What comes back goes on where it ended, under its old id.
    again = registry.register(subject, _LONG).body
    assert again["version"] == 3
    registry.ask(_DELETE, path)
    assert registry.ask(_DELETE, f"{path}?permanent=true").body == [2, 3]
    assert registry.ask(_DELETE, f"{path}?permanent=true").code == 40401
    assert registry.register(subject, _STRING).body["version"] == 1


def test_what_is_referred_to_stays(shared_registry: RegistryProcess, new_name: Callable[[], str]) -> None:
    inner, outer = new_name(), new_name()
    shared_registry.register(inner, {"type": "enum", "name": "Colour", "symbols": ["RED"]})
    record = {"type": "record", "name": "Car", "fields": [{"name": "colour", "type": "Colour"}]}
    references = [{"name": "Colour", "subject": inner, "version": 1}]
    assert shared_registry.register(outer, record).code == 42201
    assert shared_registry.register(outer, record, references=[{**references[0], "version": 2}]).code == 42201
    made = shared_registry.register(outer, record, references=references)
    assert shared_registry.get(f"/subjects/{inner}/versions/1/referencedby").body == [made.body["id"]]
    assert shared_registry.ask(_DELETE, f"/subjects/{inner}").code == 42206
    assert shared_registry.ask(_DELETE, f"/subjects/{inner}/versions/1").code == 42206
    shared_registry.ask(_DELETE, f"/subjects/{outer}")
    assert shared_registry.ask(_DELETE, f"/subjects/{inner}").body == [1]


def test_settings_of_a_subject(shared_registry: RegistryProcess, subject: str) -> None:
    registry = shared_registry
    registry.register(subject, _INT)
    assert registry.get(f"/config/{subject}?defaultToGlobal=true").body == {"compatibilityLevel": "BACKWARD"}
    answer = registry.ask(_PUT, f"/config/{subject}", {"compatibility": "forward"})
    assert answer.body == {"compatibility": "FORWARD"}
    assert registry.get(f"/config/{subject}").body == {"compatibilityLevel": "FORWARD"}
    assert registry.register(subject, _LONG).code == 40901
    assert registry.ask(_DELETE, f"/config/{subject}").body == {"compatibilityLevel": "FORWARD"}
    assert registry.register(subject, _LONG).status == 200
    assert registry.ask(_PUT, f"/mode/{subject}", {"mode": "READONLY"}).body == {"mode": "READONLY"}
    assert registry.register(subject, '"float"').code == 42205
    assert registry.ask(_DELETE, f"/subjects/{subject}").code == 42205
    assert registry.ask(_DELETE, f"/mode/{subject}").body == {"mode": "READONLY"}
    assert registry.register(subject, '"float"').status == 200


def test_import(shared_registry: RegistryProcess, subject: str) -> None:
    """Schemas of another registry keep their ids and versions."""
    registry = shared_registry
    registry.ask(_PUT, f"/mode/{subject}", {"mode": "IMPORT"})
    schema = {"type": "record", "name": "Imported", "fields": []}
    assert registry.register(subject, schema).code == 42205
    assert registry.register(subject, schema, id=5000, version=4).body["id"] == 5000
    assert registry.register(subject, _INT, id=5000).code == 42205
    assert registry.get(f"/subjects/{subject}/versions").body == [4]
    registry.ask(_PUT, f"/mode/{subject}", {"mode": "READWRITE"})
    grown = {**schema, "fields": [{"name": "a", "type": "int", "default": 0}]}
    made = registry.register(subject, grown).body
    assert (made["id"] > 5000, made["version"]) == (True, 5)


def test_normalized(shared_registry: RegistryProcess, subject: str) -> None:
    registry = shared_registry
    schema = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}}
    path = f"/subjects/{subject}/versions?normalize=true"
    registry.ask(_POST, path, {"schema": json.dumps(schema), "schemaType": "JSON"})
    shown = registry.get(f"/subjects/{subject}/versions/1").body["schema"]
    assert shown == json.dumps(schema, sort_keys=True, separators=(",", ":"))


def test_service(shared_registry: RegistryProcess) -> None:
    assert shared_registry.get("/").body == {}
    assert sorted(shared_registry.get("/schemas/types").body) == ["AVRO", "JSON", "PROTOBUF"]
    assert shared_registry.get("/contexts").body == ["."]
    assert "version" in shared_registry.get("/v1/metadata/version").body
    assert shared_registry.get("/config").body == {"compatibilityLevel": "BACKWARD"}
    assert shared_registry.get("/mode").body == {"mode": "READWRITE"}


@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF"])
def test_evolution(shared_registry: RegistryProcess, new_name: Callable[[], str], kind: str) -> None:
    """The whole table over HTTP, as a check and as a registration."""
    for case in CASES:
        if case.type == kind:
            _evolve(shared_registry, new_name(), case)


def _evolve(registry: RegistryProcess, subject: str, case: Case) -> None:
    wanted = {"schema": case.new, "schemaType": case.type}
    registry.ask(_PUT, f"/config/{subject}", {"compatibility": "BACKWARD"})
    assert registry.register(subject, case.old, schemaType=case.type).status == 200, case.id
    verdicts = {}
    for level in ("BACKWARD", "FORWARD", "FULL", "FULL_TRANSITIVE", "NONE"):
        registry.ask(_PUT, f"/config/{subject}", {"compatibility": level})
        path = f"/compatibility/subjects/{subject}/versions/latest?verbose=true"
        answer = registry.ask(_POST, path, wanted).body
        assert answer["is_compatible"] == (not answer["messages"])
        verdicts[level] = answer["is_compatible"]
    both = case.backward and case.forward
    expected = {
        "BACKWARD": case.backward,
        "FORWARD": case.forward,
        "FULL": both,
        "FULL_TRANSITIVE": both,
        "NONE": True,
    }
    assert verdicts == expected, case.id
    registry.ask(_PUT, f"/config/{subject}", {"compatibility": "FULL"})
    registered = registry.register(subject, case.new, schemaType=case.type)
    assert registered.status == (200 if both else 409), case.id
