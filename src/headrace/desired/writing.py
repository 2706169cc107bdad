"""A cluster as a file: what `headrace apply` reads. The same cluster gives the same bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

from headrace.client.quota_values import number_of
from headrace.client.quotas import CLIENT_ID, IP, USER, Entity
from headrace.desired.document import DEFAULT_MECHANISMS
from headrace.desired.ownership import Kind, Ownership
from headrace.desired.present import Present, PresentSubject, PresentTopic
from headrace.registry.content import SchemaType
from headrace.security.acl import AclRule
from headrace.security.acl_document import RULE_FIELDS, document_of
from headrace.security.scram_credential import ScramMechanism

_HEAD: Final = """\
# What a cluster has, for `headrace apply -f FILE`; with --check it only compares.
"""
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_TRUTHS: Final = {"true": True, "false": False}
_NO_VARIABLE: Final = re.compile(r"[^A-Z0-9]+")


def write_document(present: Present, owns: Ownership) -> str:
    document: dict[str, Any] = {
        "owns": {kind.value: list(owns.patterns[kind]) for kind in Kind if kind in owns}
    }
    if Kind.TOPICS in owns:
        document["topics"] = {name: _topic(topic) for name, topic in sorted(present.topics.items())}
    if Kind.LINKS in owns:
        document["links"] = {
            name: _link(name, present.links[name].values, copy)
            for name, copy in sorted(present.copies.items())
        }
    if Kind.USERS in owns:
        variables = _variables(sorted(present.users))
        document["users"] = {
            name: _user(mechanisms, variables[name]) for name, mechanisms in sorted(present.users.items())
        }
    if Kind.ACLS in owns:
        document["acls"] = [_rule(rule) for rule in sorted(present.acls, key=_by_principal)]
    if Kind.QUOTAS in owns:
        quotas = sorted(present.quotas.items(), key=lambda each: str(each[0]))
        document["quotas"] = [_quota(entity, values) for entity, values in quotas]
    if Kind.SCHEMAS in owns:
        subjects = sorted(present.subjects.items())
        document["schemas"] = {name: _subject(subject) for name, subject in subjects}
    if Kind.CONNECTORS in owns:
        document["connectors"] = {
            name: {key: _value(text) for key, text in sorted(settings.items())}
            for name, settings in sorted(present.connectors.items())
        }
    body = yaml.dump(document, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=110)
    return f"{_HEAD}{body}"


def _topic(topic: PresentTopic) -> dict[str, Any]:
    found: dict[str, Any] = {"partitions": len(topic.replicas)}
    if len(topic.factors) == 1:  # of partitions that differ nobody can say what they should be
        found["replicas"] = topic.factors[0]
    if topic.settings:
        found["settings"] = {name: _value(text) for name, text in sorted(topic.settings.items())}
    return found


def _link(name: str, values: Mapping[str, str], copy: PresentTopic) -> dict[str, Any]:
    """Partitions are the source's."""
    found: dict[str, Any] = {"source": values["source"]}
    if values["topic"] != name:
        found["topic"] = values["topic"]
    if "client-config" in values:
        found["client-config"] = values["client-config"]
    if "groups" in values:
        found["groups"] = values["groups"].split(",")
    topic = _topic(copy)
    del topic["partitions"]
    return {**found, "state": values["state"], **topic}


def _subject(subject: PresentSubject) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if subject.schema.type is not SchemaType.AVRO:
        found["type"] = subject.schema.type.value
    if subject.level is not None:
        found["compatibility"] = subject.level
    if subject.schema.references:
        found["references"] = [each.document() for each in subject.schema.references]
    return {**found, "schema": subject.schema.text}


def _value(text: str) -> str | int | bool:
    """Without quotes, where it reads the same without them."""
    if _NUMBER.fullmatch(text) and text != "-0":
        return int(text)
    return _TRUTHS.get(text, text)


def _user(mechanisms: Mapping[ScramMechanism, int], variable: str) -> dict[str, Any]:
    found: dict[str, Any] = {"password": {"env": variable}}
    if mechanisms != DEFAULT_MECHANISMS:
        in_order = sorted(mechanisms.items(), key=lambda each: each[0].value)
        found["mechanisms"] = {mechanism.value: iterations for mechanism, iterations in in_order}
    return found


def _variables(names: list[str]) -> dict[str, str]:
    """A variable for each user's password, each its own."""
    found: dict[str, str] = {}
    for name in names:
        first = variable = "PASSWORD_" + _NO_VARIABLE.sub("_", name.upper())
        number = 1
        while variable in found:
            number += 1
            variable = f"{first}_{number}"
        found[variable] = name
    return {name: variable for variable, name in found.items()}


def _by_principal(rule: AclRule) -> tuple[object, ...]:
    return rule.principal, *rule


def _rule(rule: AclRule) -> dict[str, str]:
    return {name: value for name, value in document_of(rule).items() if value != RULE_FIELDS[name]}


def _quota(entity: Entity, values: Mapping[str, float]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind in (USER, CLIENT_ID, IP):
        for part, name in entity:
            if part == kind:
                found.update({f"{kind}-default": True} if name is None else {kind: name})
    return found | {name: number_of(value) for name, value in sorted(values.items())}
