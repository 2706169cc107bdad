"""Settings as Kafka Connect describes them: what there is, and what is wrong with what was given."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from headrace.config.secret import HIDDEN
from headrace.connect import common_settings, errors
from headrace.connect.api import Connector, Described, Sink
from headrace.connect.config import Config
from headrace.connect.plugins import all_settings, common_of, version_of
from headrace.connect.redaction import is_secret, shown
from headrace.connect.settings import BadSetting, Kind, Setting, Settings

_WIDTHS: Final = {Kind.BOOLEAN: "SHORT", Kind.INT: "SHORT", Kind.LONG: "MEDIUM", Kind.LIST: "LONG"}
_TOPICS: Final = (common_settings.TOPICS, common_settings.TOPICS_REGEX)


def definitions(connector: type[Connector]) -> list[dict[str, Any]]:
    """Of `GET /connector-plugins/P/config`: its own settings, then those of every connector."""
    own, common = _parted(connector)
    orders = _orders(common)
    return [_definition(each, orders.get(each.name, -1), connector) for each in (*own, *common)]


def validated(described: Described, given: Mapping[str, str]) -> dict[str, Any]:
    """Of `PUT /connector-plugins/P/config/validate`."""
    connector = described.connector
    own, common = _parted(connector)
    orders = _orders(common)
    problems = problems_of(connector, given)
    every = [*common, *own]
    texts = shown(given, all_settings(connector))
    configs = [
        {
            "definition": _definition(each, orders.get(each.name, -1), connector),
            "value": {
                "name": each.name,
                "value": _value(each, texts.get(each.name), problems.get(each.name, [])),
                "recommended_values": list(each.one_of) if each.group is None else [],
                "errors": problems.get(each.name, []),
                "visible": True,
            },
        }
        for each in every
    ] + [
        _undeclared(name, given, why) for name, why in problems.items() if name not in all_settings(connector)
    ]
    groups = list(dict.fromkeys(each.group for each in every if each.group is not None))
    return {
        "name": given.get(common_settings.CLASS, described.name),
        "error_count": sum(len(found) for found in problems.values()),
        "groups": groups,
        "configs": configs,
    }


def problems_of(connector: type[Connector], given: Mapping[str, str]) -> dict[str, list[str]]:
    """{setting: what is wrong}, without those that are right."""
    found: dict[str, list[str]] = {}
    values: dict[str, Any] = {}
    for each in all_settings(connector):
        try:
            values[each.name] = _parsed(each, given.get(each.name))
        except BadSetting as error:
            found[each.name] = [str(error)]
            if each.least is not None and "Not a number" in str(error):
                null = f"Invalid value null for configuration {each.name}: Value must be non-null"
                found[each.name].append(null)
    if issubclass(connector, Sink):
        _check_topics(given, found)
    if not found:
        config = Config(given.get(common_settings.NAME, ""), values, dict(given))
        for name, why in connector.check(config).items():
            found.setdefault(name, []).append(why)
    return found


def _undeclared(name: str, given: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
    """Of a name that no setting has and that the connector refuses, as Kafka Connect answers it."""
    value = {
        "name": name,
        "value": HIDDEN if is_secret(name, None) else given.get(name),
        "recommended_values": [],
        "errors": problems,
        "visible": True,
    }
    return {"definition": None, "value": value}


def must_be_valid(connector: type[Connector], given: Mapping[str, str]) -> None:
    """Raises ConnectError with all that is wrong."""
    problems = problems_of(connector, given)
    if problems:
        raise errors.invalid_config([text for found in problems.values() for text in found])


def _parsed(setting: Setting, text: str | None) -> Any:
    if setting.name == common_settings.NAME and text is not None and not text.strip():
        raise BadSetting("Invalid value  for configuration name: String may not be empty")
    if setting.name == common_settings.NAME and text is not None and any(map(_is_control, text)):
        raise BadSetting(
            f"Invalid value {text!r} for configuration name: String may not have control characters"
        )
    if text is not None and text.startswith("${") and setting.kind is not Kind.LIST:
        return text  # what it stands for is known on the worker only
    return setting.parse(text)


def _is_control(character: str) -> bool:
    return unicodedata.category(character) == "Cc"


def _check_topics(given: Mapping[str, str], found: dict[str, list[str]]) -> None:
    named = [name for name in _TOPICS if given.get(name, "").strip()]
    if len(named) == 1:
        return
    text = "Must configure one of topics or topics.regex"
    if named:
        text = "topics and topics.regex are mutually exclusive options, but both are set."
    for name in _TOPICS:
        found.setdefault(name, []).append(text)


def _parted(connector: type[Connector]) -> tuple[Settings, Settings]:
    every = all_settings(connector)
    base = common_of(connector)
    own = Settings(*(each for each in every if each.name not in base))
    return own, Settings(*(each for each in every if each.name in base))


def _orders(settings: Settings) -> dict[str, int]:
    """The place of each in its group, from 1."""
    counts: dict[str | None, int] = {}
    orders = {}
    for each in settings:
        counts[each.group] = counts.get(each.group, 0) + 1
        orders[each.name] = counts[each.group]
    return orders


def _definition(setting: Setting, order: int, connector: type[Connector]) -> dict[str, Any]:
    grouped = setting.group is not None
    return {
        "name": setting.name,
        "type": setting.kind.value,
        "required": setting.is_required,
        "default_value": version_of(connector)
        if setting.name == common_settings.PLUGIN_VERSION
        else _default(setting),
        "importance": setting.importance.value,
        "documentation": setting.doc,
        "group": setting.group,
        "order_in_group": order if grouped else -1,
        "width": _WIDTHS.get(setting.kind, "MEDIUM") if grouped else "NONE",
        "display_name": setting.display or setting.name,
        "dependents": [],
    }


def _default(setting: Setting) -> str | None:
    """As a text, as it would be given."""
    if setting.is_required or setting.default is None:
        return None
    if setting.is_secret:
        return HIDDEN
    if isinstance(setting.default, bool):
        return str(setting.default).lower()
    if isinstance(setting.default, tuple):
        return ",".join(setting.default)
    return str(setting.default)


def _value(setting: Setting, text: str | None, problems: list[str]) -> str | None:
    """What is no number or no boolean has no value; one that is out of bounds has."""
    if text is None:
        return _default(setting)
    no_value = any(said in problem for problem in problems for said in ("Not a number", "Expected value"))
    return None if no_value else text
