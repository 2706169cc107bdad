"""Decisions and their replay, without a server: random histories, and what must hold after each step."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from headrace.registry import deleting, registering, settings
from headrace.registry.content import Content, Reference, SchemaType
from headrace.registry.decision import Decision
from headrace.registry.errors import RegistryError
from headrace.registry.formats import Formats
from headrace.registry.records import Entry, SchemaKey, SchemaValue, decode
from headrace.registry.registering import Submission
from headrace.registry.state import State


class _World:
    """A state, and the log that it came from."""

    def __init__(self) -> None:
        self.state = State()
        self.formats = Formats()
        self.log: list[tuple[bytes, bytes | None]] = []

    def do(self, decision: Decision[Any]) -> Any:
        for entry in decision.records:
            self.log.append(entry.encode())
            read = decode(*self.log[-1])
            assert read is not None
            self.state.replay(read)
        return decision.answer

    def register(self, subject: str, text: str, **rest: Any) -> Any:
        return self.do(
            registering.register(
                self.state, self.formats, subject, Submission(Content(SchemaType.AVRO, text, **rest))
            )
        )

    def replayed(self, *, compacted: bool = False) -> State:
        state = State()
        log = self.log
        if compacted:
            last = {key: at for at, (key, _) in enumerate(log)}
            log = [
                (key, value) for at, (key, value) in enumerate(log) if last[key] == at and value is not None
            ]
        for key, value in log:
            entry = decode(key, value)
            assert entry is not None
            state.replay(entry)
        return state


def _schema(number: int, fields: int) -> str:
    names = [{"name": f"f{at}", "type": "int", "default": 0} for at in range(fields)]
    return json.dumps({"type": "record", "name": f"R{number}", "fields": names})


def _known(state: State) -> object:
    subjects = list(state.subjects(deleted=True))
    return (
        {subject: state.versions(subject, deleted=True) for subject in subjects},
        {subject: (state.setting("CONFIG", subject), state.setting("MODE", subject)) for subject in subjects},
        {
            (entry.subject, entry.version): state.referrers(entry.subject, entry.version)
            for subject in subjects
            for entry in state.versions(subject, deleted=True)
        },
        state.highest_id,
    )


def _step(world: _World, random: random.Random) -> None:
    subject = f"s{random.randrange(3)}"
    action = random.randrange(10)
    state = world.state
    if action < 5:
        references: tuple[Reference, ...] = ()
        others = [entry for entry in state.versions(f"s{random.randrange(3)}") if entry.subject != subject]
        if others and random.random() < 0.3:
            references = (Reference("Other", others[0].subject, others[0].version),)
        world.register(subject, _schema(random.randrange(3), random.randrange(4)), references=references)
    elif action == 5:
        world.do(deleting.delete_subject(state, subject, permanent=random.random() < 0.5))
    elif action in (6, 7):
        version = random.choice([-1, 1, 2, 3])
        world.do(deleting.delete_version(state, subject, version, permanent=random.random() < 0.5))
    elif action == 8:
        world.do(settings.put_config(state, subject, {"compatibility": random.choice(["NONE", "FULL"])}))
    else:
        world.do(settings.put_mode(state, subject, {"mode": random.choice(["READONLY", "READWRITE"])}))


@pytest.mark.parametrize("seed", range(40))
def test_random_histories(seed: int) -> None:
    drawn = random.Random(seed)
    world = _World()
    given: dict[int, Content] = {}
    for _ in range(60):
        before = _known(world.state)
        try:
            _step(world, drawn)
        except RegistryError:
            assert _known(world.state) == before, "what was refused changed something"
        for subject in world.state.subjects(deleted=True):
            for entry in world.state.versions(subject, deleted=True):
                assert given.setdefault(entry.id, entry.content) == entry.content, "an id for two schemas"
    assert _known(world.replayed()) == _known(world.state)
    # Compaction keeps the last record of each key and forgets what was taken away.
    assert _known(world.replayed(compacted=True)) == _known(world.state)


def test_an_id_is_not_given_again_after_all_was_deleted_and_compacted() -> None:
    world = _World()
    first = world.register("s", '"int"')
    world.do(deleting.delete_subject(world.state, "s", permanent=False))
    world.do(deleting.delete_subject(world.state, "s", permanent=True))
    after = world.replayed(compacted=True)
    assert after.highest_id == first.id
    with pytest.raises(RegistryError) as caught:
        after.content(first.id)
    assert caught.value.code == 40403


_ORDER = '{"type":"record","name":"Order","fields":[{"name":"line","type":"Line"}]}'


def _line(fields: int) -> str:
    names = [{"name": f"f{at}", "type": "int", "default": 0} for at in range(fields)]
    return json.dumps({"type": "record", "name": "Line", "fields": names})


def test_a_reference_to_the_latest_means_the_one_that_was_latest_then() -> None:
    world = _World()
    for fields in (1, 2, 3):
        world.register("line", _line(fields))
    # Deleted softly, it can still be named, but is no longer the latest.
    world.do(deleting.delete_version(world.state, "line", 3, permanent=False))
    latest = (Reference("Line", "line", -1),)
    first = world.register("order", _ORDER, references=latest)
    assert first.content.references == (Reference("Line", "line", 2),)
    assert world.register("order", _ORDER, references=latest) == first
    asked = Submission(Content(SchemaType.AVRO, _ORDER, latest))
    assert registering.look_up(world.state, world.formats, "order", asked) == first
    assert registering.compatibility(world.state, world.formats, "order", asked, None) == []
    assert [entry.id for entry in world.state.referrers("line", 2)] == [first.id]
    with pytest.raises(RegistryError) as caught:
        world.do(deleting.delete_version(world.state, "line", 2, permanent=False))
    assert caught.value.code == 42206
    world.register("line", _line(4))
    assert world.state.content(first.id).references == (Reference("Line", "line", 2),)
    second = world.register("order", _ORDER, references=latest)
    assert second.id != first.id
    assert second.content.references == (Reference("Line", "line", 4),)


@pytest.mark.parametrize(
    ("subject", "version"), [("line", 0), ("line", -2), ("line", 2**31), ("line", True), ("nobody", -1)]
)
def test_a_reference_to_what_can_be_no_version_is_refused(subject: str, version: int) -> None:
    world = _World()
    world.register("line", _line(1))
    with pytest.raises(RegistryError) as caught:
        world.register("order", _ORDER, references=(Reference("Line", subject, version),))
    assert caught.value.code == 42201


def test_a_stored_reference_to_the_latest_is_still_read() -> None:
    world = _World()
    world.register("line", _line(1))
    stored = Entry(
        SchemaKey("order", 1),
        SchemaValue(9, Content(SchemaType.AVRO, _ORDER, (Reference("Line", "line", -1),))),
    )
    world.do(Decision([stored], None))
    assert world.formats.parse(world.replayed(), world.state.content(9)).text


@pytest.mark.parametrize(
    ("number", "version", "taken"),
    [(2**31 - 1, 2**31 - 1, True), (2**31, 1, False), (1, 2**31, False)],
)
def test_imported_numbers_must_fit_into_the_wire_format(number: int, version: int, taken: bool) -> None:
    world = _World()
    world.do(settings.put_mode(world.state, "s", {"mode": "IMPORT"}))
    brought = Submission(Content(SchemaType.AVRO, '"int"'), id=number, version=version)
    if taken:
        entry = world.do(registering.register(world.state, world.formats, "s", brought))
        assert (entry.id, entry.version) == (number, version)
    else:
        with pytest.raises(RegistryError) as caught:
            registering.register(world.state, world.formats, "s", brought)
        assert caught.value.status == 422


def test_a_schema_in_another_spelling_is_the_same() -> None:
    world = _World()
    first = world.register("s", '{"type":"record","name":"R","namespace":"n","fields":[]}')
    again = world.register("s", ' {"namespace": "n", "name": "R", "fields": [], "type": "record"} ')
    assert again == first
    full = world.register("s", '{"type":"record","name":"n.R","fields":[]}')
    assert full == first


_RULES = '{"ruleSet":{"domainRules":[{"name":"encrypt"}]}}'
_OWNED = '{"metadata":{"properties":{"owner":"shop"}},"ruleSet":{"domainRules":[{"name":"encrypt"}]}}'


def test_a_bare_schema_has_the_rules_of_the_latest_version() -> None:
    """As serialisers send it, which know nothing of rules."""
    world = _World()
    first = world.register("s", _schema(1, 1), extras=_RULES)
    assert world.register("s", _schema(1, 1)) == first
    bare = Submission(Content(SchemaType.AVRO, _schema(1, 1)))
    assert registering.look_up(world.state, world.formats, "s", bare) == first
    second = world.register("s", _schema(1, 2), extras='{"metadata":{"properties":{"owner":"shop"}}}')
    assert (second.version, second.content.extras) == (2, _OWNED)
    third = world.register("s", _schema(1, 3))
    assert (third.version, third.content.extras) == (3, _OWNED)
    assert world.register("other", _schema(1, 1)).content.extras == "{}"


def test_a_version_without_rules_is_found_behind_one_with_them() -> None:
    world = _World()
    first = world.register("s", _schema(1, 1))
    world.register("s", _schema(1, 1), extras=_RULES)
    assert world.register("s", _schema(1, 1)) == first


def test_what_is_imported_is_as_it_was_elsewhere() -> None:
    world = _World()
    world.do(settings.put_mode(world.state, "s", {"mode": "IMPORT"}))
    for number, extras in ((7, _RULES), (8, "{}")):
        brought = Submission(Content(SchemaType.AVRO, _schema(1, 1), extras=extras), id=number)
        entry = world.do(registering.register(world.state, world.formats, "s", brought))
        assert (entry.id, entry.content.extras) == (number, extras)


@pytest.mark.parametrize("mode", ["READONLY", "READONLY_OVERRIDE", "IMPORT"])
def test_what_is_there_is_told_in_every_mode(mode: str) -> None:
    world = _World()
    first = world.register("s", _schema(1, 1))
    world.do(settings.put_mode(world.state, None, {"mode": mode}, force=True))
    assert world.register("s", _schema(1, 1)) == first
    with pytest.raises(RegistryError) as caught:
        world.register("s", _schema(1, 2))
    assert caught.value.code == 42205


def test_a_cleared_subject_forgets_what_was_deleted() -> None:
    world = _World()
    world.register("s", '"int"')
    world.register("s", '"long"')
    world.do(deleting.delete_version(world.state, "s", 1, permanent=False))
    entry = decode(b'{"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}', b'{"subject":"s"}')
    assert entry is not None
    world.state.replay(entry)
    assert [entry.version for entry in world.state.versions("s", deleted=True)] == [2]


def test_the_global_override_counts_above_all() -> None:
    world = _World()
    world.do(settings.put_mode(world.state, "s", {"mode": "READWRITE"}))
    world.do(settings.put_mode(world.state, None, {"mode": "READONLY"}))
    assert settings.mode_of(world.state, "s") == "READWRITE"
    assert settings.mode_of(world.state, "t") == "READONLY"
    world.do(settings.put_mode(world.state, None, {"mode": "READONLY_OVERRIDE"}))
    assert settings.mode_of(world.state, "s") == "READONLY_OVERRIDE"


@pytest.mark.parametrize(
    ("level", "texts", "refused_at"),
    [
        ("NONE", ['"int"', '"string"', '"int"'], None),
        ("BACKWARD", ['"int"', '"long"', '"string"'], 2),
        ("BACKWARD", ['"int"', '"long"', '"double"'], None),
        ("FORWARD", ['"double"', '"long"', '"int"'], None),
        ("FORWARD", ['"int"', '"long"'], 1),
        ("FULL", ['"string"', '"bytes"'], None),
        ("FULL", ['"int"', '"long"'], 1),
    ],
)
def test_levels(level: str, texts: list[str], refused_at: int | None) -> None:
    world = _World()
    world.do(settings.put_config(world.state, None, {"compatibility": level}))
    for at, text in enumerate(texts):
        if at == refused_at:
            with pytest.raises(RegistryError) as caught:
                world.register("s", text)
            assert caught.value.code == 40901
        else:
            world.register("s", text)


@pytest.mark.parametrize(("level", "taken"), [("BACKWARD", True), ("BACKWARD_TRANSITIVE", False)])
def test_transitive_levels_look_at_all_versions(level: str, taken: bool) -> None:
    """A default comes and goes: each step is fine, the whole way is not."""
    world = _World()
    world.do(settings.put_config(world.state, None, {"compatibility": level}))
    field = {"name": "b", "type": "int"}
    for fields in ([], [{**field, "default": 1}]):
        world.register("s", json.dumps({"type": "record", "name": "R", "fields": fields}))
    last = json.dumps({"type": "record", "name": "R", "fields": [field]})
    if taken:
        assert world.register("s", last).version == 3
    else:
        with pytest.raises(RegistryError) as caught:
            world.register("s", last)
        assert "version 1" in str(caught.value)
