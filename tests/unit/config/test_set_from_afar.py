"""What an admin client may set names no file, no class and no URL, and is never anything but its own text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.config.broker import BROKER_PROPERTIES, BrokerConfig
from headrace.config.describe import describe_broker, describe_topic
from headrace.config.group_properties import GROUP_PROPERTIES
from headrace.config.properties_file import read_properties
from headrace.config.property import Property, UpdateMode
from headrace.config.topic_properties import TOPIC_PROPERTIES
from headrace.config.values import ConfigType
from headrace.controller.declared_schema import DeclaredSchema
from headrace.core.errors import HeadraceError

CANARY = "canary-5be1"
FREE_TEXTS = {"max.connections.per.ip.overrides"}
"""Strings without a list of what they may be: each is passed over or checked by a function of its own."""
SETTABLE: dict[str, Property[object]] = {
    **{name: each for name, each in BROKER_PROPERTIES.items() if each.update is not UpdateMode.READ_ONLY},
    **TOPIC_PROPERTIES,
    **GROUP_PROPERTIES,
}
FIXED = sorted(name for name, each in BROKER_PROPERTIES.items() if each.update is UpdateMode.READ_ONLY)
PROVIDERS = [
    "${file:/etc/passwd:root}",
    "${env:HOME}",
    "${directory:/etc:passwd}",
    "%(HOME)s",
    "$HOME",
    "{0}",
]


def test_it_is_a_number_or_one_of_a_few_words() -> None:
    texts = {
        name: each for name, each in SETTABLE.items() if each.type in (ConfigType.STRING, ConfigType.LIST)
    }
    assert {name for name, each in texts.items() if not each.allowed and each.check is None} == FREE_TEXTS
    assert not [
        name for name, each in SETTABLE.items() if each.type in (ConfigType.CLASS, ConfigType.PASSWORD)
    ]
    assert len(SETTABLE) > 50


@pytest.mark.parametrize("cluster_wide", [False, True])
def test_where_keys_classes_and_files_are_is_set_in_the_file_alone(cluster_wide: bool) -> None:
    """Also under the prefix of a listener or a mechanism, where each has a name that nobody has declared: it
    would be stored, and have no effect."""
    scoped = [
        f"listener.name.{listener}.{name}"
        for name in FIXED
        if name.startswith(("ssl.", "sasl."))
        for listener in ("ssl", "a.b", "ssl.plain")
    ]
    others = ["plain.sasl.jaas.config", "x.jaas.config", "ssl.unknown", "sasl.server.callback.handler.class"]
    accepted, complaints = [], []
    for name in (*FIXED, *scoped, *others):
        declared = BROKER_PROPERTIES.get(name)
        text = (None if declared is None else declared.default_text()) or CANARY
        try:
            DeclaredSchema().check_broker({name: text}, [name], cluster_wide=cluster_wide)
        except HeadraceError as refused:
            complaints.append(str(refused))
        else:
            accepted.append(name)
    assert accepted == []
    assert CANARY not in "".join(complaints)


def test_what_is_nobodys_is_let_through() -> None:
    DeclaredSchema().check_broker({"own.thing": "1"}, ["own.thing"], cluster_wide=False)


@pytest.mark.parametrize("text", PROVIDERS)
def test_no_value_is_replaced_by_what_it_points_to(
    text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", CANARY)
    throttled = {"leader.replication.throttled.replicas": text}
    for check in (DeclaredSchema().check_topic, DeclaredSchema().check_group):
        with pytest.raises(HeadraceError) as refused:
            check(throttled)
        assert CANARY not in str(refused.value)
    overrides = {"max.connections.per.ip.overrides": text}
    config = BrokerConfig.parse({"broker.id": "1"})
    shown = {each.name: each.value for each in describe_broker(config, {}, overrides)}
    assert shown["max.connections.per.ip.overrides"] == text
    assert CANARY not in repr(describe_topic(config, overrides, {}, {}))
    file = tmp_path / "server.properties"
    file.write_text(f"ssl.keystore.location={text}\n")
    assert read_properties(str(file)) == {"ssl.keystore.location": text}, "nor in the file"
    assert os.environ["HOME"] == CANARY
