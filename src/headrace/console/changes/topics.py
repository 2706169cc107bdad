"""Changes of a topic: settings and partitions, as a file of `headrace apply` would say them, and its end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.configs import ConfigEntry, ConfigSource, Resource, ResourceType, describe_configs
from headrace.client.errors import ClientFailure
from headrace.client.shell_words import command, word
from headrace.client.topics import describe_topics
from headrace.console.changes.planned import Line, Planned, Subject, Tell
from headrace.desired import carrying_out, wire
from headrace.desired.asking import ask_topic, ask_uses
from headrace.desired.changes import TopicChange, TopicDeletion
from headrace.desired.document import Document, Topic
from headrace.desired.ownership import Kind, Ownership
from headrace.desired.plan import Plan, plan
from headrace.desired.present import Present, PresentTopic
from headrace.desired.settings import OF_MOVES
from headrace.security.acl import ResourceType as Resources

SETTING: Final = "setting."
"""Before the name of a setting, in forms and addresses: their other fields have names too."""
PARTITIONS: Final = "partitions"
_SIGNS: Final = {"create": "+", "change": "~", "delete": "-"}


async def settings_of(cluster: Cluster, name: str) -> list[ConfigEntry]:
    """Those that a person may set; those that are set come first."""
    found = await describe_configs(cluster, Resource(ResourceType.TOPIC, name))
    kept = [each for each in found if not each.read_only and each.name not in OF_MOVES]
    return sorted(kept, key=lambda each: (each.source != ConfigSource.TOPIC, each.name))


async def plan_settings(cluster: Cluster, name: str, fields: Mapping[str, str]) -> Planned:
    """A setting without a value is the brokers'; a field that is not there is left as it is."""
    there = await _present(cluster, name)
    wanted = Topic(_count(fields.get(PARTITIONS, "")), None, _wanted(fields, there))
    found = plan(
        Document(Ownership({Kind.TOPICS: [name]}), topics={name: wanted}), Present(topics={name: there})
    )
    refused = [*found.refused, *(await wire.objections(cluster, found) if found.changes else ())]
    lines = [Line(_SIGNS[each.verb], f"{each.kind} {name}", each.differences) for each in found.changes]
    grows = any(isinstance(each, TopicChange) and each.partitions is not None for each in found.changes)
    notes = ["Records that are there stay where they are, so a key may be in two partitions from then on."]
    changes = [each for each in found.changes if isinstance(each, TopicChange)]
    return Planned(
        Subject(Resources.TOPIC, name),
        f"Change topic {name}",
        tuple(lines),
        tuple(line for each in changes for line in _commands(each)),
        partial(_carry_out, found),
        notes=tuple(notes if grows else ()),
        refused=tuple(_sentence(each) for each in refused),
        fields=tuple((each, fields[each]) for each in sorted(fields) if _is_field(each)),
    )


async def plan_deletion(cluster: Cluster, name: str, fields: Mapping[str, str]) -> Planned:  # noqa: ARG001
    (state,) = await describe_topics(cluster, [name])
    if state.internal:
        raise brokers_own(name)
    use = (await ask_uses(cluster, [name]))[name]
    found = Plan((TopicDeletion(name),))
    notes = ["There is no way back: what a topic had is gone with it."]
    if use:
        notes.insert(0, f"It {use}.")
    return Planned(
        Subject(Resources.TOPIC, name),
        f"Delete topic {name}",
        tuple(Line("-", f"topic {name}") for _ in found.changes),
        (command("headrace topic delete", name),),
        partial(_carry_out, found),
        notes=tuple(notes),
        typed=name,
        identity=json.dumps([str(state.topic_id), use.records > 0, use.readers]),
    )


async def _carry_out(found: Plan, cluster: Cluster, tell: Tell) -> None:
    await carrying_out.carry_out(found, wire.WireAdministration(cluster), {}, tell)


async def _present(cluster: Cluster, name: str) -> PresentTopic:
    there = await ask_topic(cluster, name)
    if there is None:
        raise brokers_own(name)
    return there


def brokers_own(name: str) -> ClientFailure:
    return ClientFailure(
        f"topic {name} is the brokers' own",
        f"`{command('headrace topic alter', name)}` and `headrace config set --topic {word(name)}` change it",
    )


def _wanted(fields: Mapping[str, str], there: PresentTopic) -> dict[str, str]:
    wanted = dict(there.settings)
    for field, text in fields.items():
        name = field.removeprefix(SETTING)
        if name == field or name in OF_MOVES:
            continue
        if text.strip():
            wanted[name] = text.strip()
        elif wanted.get(name) != "":
            wanted.pop(name, None)
    return wanted


def _is_field(name: str) -> bool:
    return name == PARTITIONS or name.startswith(SETTING)


def _count(text: str) -> int | None:
    text = text.strip()
    if not text:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise ClientFailure(f"{text} is no number of partitions", "write it in digits, for instance 12")
    return int(text)


def _commands(change: TopicChange) -> list[str]:
    topic = word(change.name)
    new = change.new_settings
    given = [word(f"{name}={text}") for name, text in sorted(new.items()) if text is not None]
    gone = [word(name) for name, text in sorted(new.items()) if text is None]
    said = []
    if given:
        said.append(f"headrace config set --topic {topic} {' '.join(given)}")
    if gone:
        said.append(f"headrace config unset --topic {topic} {' '.join(gone)}")
    if change.partitions is not None:
        said.append(
            command("headrace topic alter", change.name, options=f"--partitions {change.partitions[1]}")
        )
    return said


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
