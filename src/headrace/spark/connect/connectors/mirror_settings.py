"""The settings of a mirror as a connector: those of mirror.toml, as SECTION.KEY. Pure.

Its topics are one rule here: names, and a pattern. What the worker has anyway has its name there: how many
tasks, how long to wait, the Spark session.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headrace.config.secret import HIDDEN
from headrace.connect import common_settings
from headrace.connect.api import Config
from headrace.connect.settings import BadSetting, Importance, Kind, Setting, Settings, names_of
from headrace.spark.lake.fields import Wrong, named
from headrace.spark.mirror.config import COMPRESSIONS, EXISTING, STARTS, MirrorConfig, of_document

_HIGH, _LOW = Importance.HIGH, Importance.LOW
_BROKERS: Final = "bootstrap.servers"
_SIDES: Final = ("source", "target")
_SECTIONS: Final = ("mirror", "groups", "acls")
_SOMEWHERE: Final = "known.on.the.worker:9092"
_LOSS: Final = re.compile(r"(?i)accept[._-]?loss")
_INSTEAD: Final = {
    "mirror.tasks": "of a connector it is tasks.max",
    "mirror.trigger": "of a connector it is poll.interval.ms",
    "topics.name": "write topics, with commas between the names",
    "topics.regex": "of a mirror it is topics.pattern",
}


def _whole(patterns: tuple[str, ...]) -> None:
    """A comma ends a pattern, so one inside of braces has cut it."""
    for each in patterns:
        if each.count("{") != each.count("}"):
            raise BadSetting(f"{each!r} is half a pattern: commas are between patterns, and cannot be in one")


SETTINGS: Final = Settings(
    Setting(f"source.{_BROKERS}", doc="Brokers of the cluster to copy from.", importance=_HIGH),
    Setting(
        "source.command_config",
        default=None,
        doc="A file on every worker with more settings of Kafka's clients: TLS, passwords. They may also be "
        "given as source.NAME.",
    ),
    Setting(
        f"target.{_BROKERS}",
        default=None,
        doc="Brokers of the cluster to copy to. Without: the worker's.",
        importance=_HIGH,
    ),
    Setting("target.command_config", default=None, doc="As for the source; also target.NAME."),
    Setting("topics", Kind.LIST, (), "Names of topics, with commas between them.", _HIGH),
    Setting(
        "topics.pattern",
        default=None,
        doc="A regular expression for whole names; none that begin with _. Names come before it.",
        importance=_HIGH,
    ),
    Setting(
        "topics.exclude",
        Kind.LIST,
        None,
        "Regular expressions, with commas between them: what of the pattern is left out.",
        check=_whole,
    ),
    Setting(
        "topics.target",
        default=None,
        doc="The name on the target, as in eu.{topic}. Without: the same.",
    ),
    Setting(
        "mirror.name",
        default=None,
        doc="Its position is kept under this name. Without: the connector's.",
        importance=_HIGH,
    ),
    Setting(
        "mirror.start",
        default="earliest",
        doc="Where topics begin that are new to the mirror.",
        one_of=STARTS,
    ),
    Setting(
        "mirror.existing",
        default="refuse",
        doc="append: topics of the target may have records of their own.",
        one_of=EXISTING,
    ),
    Setting("mirror.settings", Kind.BOOLEAN, True, "Settings of topics go along."),
    Setting("mirror.discover", default=None, doc="How often settings are compared: 30s.", importance=_LOW),
    Setting(
        "mirror.group", default=None, doc="A consumer group at the source that shows how far the mirror is."
    ),
    Setting(
        "mirror.max_records_per_batch", Kind.INT, 1_000_000, "The largest batch.", _LOW, least=1
    ),
    Setting(
        "mirror.compression", default="none", doc="Of what is written to the target.", one_of=COMPRESSIONS
    ),
    Setting(
        "mirror.replication_factor",
        Kind.INT,
        None,
        "Of new topics of the target. Without: the source's.",
        least=1,
    ),
    Setting(
        "mirror.decisions",
        default="__headrace_sink",
        doc="The topic of the target in which batches are decided.",
        importance=_LOW,
    ),
    Setting(
        "groups.patterns",
        Kind.LIST,
        None,
        "Groups whose offsets are carried: regular expressions, with commas between them. With none of "
        "`groups.` none is carried.",
        check=_whole,
    ),
    Setting("groups.exclude", Kind.LIST, None, "Groups that are left out of them.", check=_whole),
    Setting("groups.every", default=None, doc="How often: 5s.", importance=_LOW),
    Setting(
        "acls.every",
        default=None,
        doc="How often rights to read are carried, as in 1m. Without it none are.",
    ),
)  # fmt: skip
_OWN: Final = frozenset(names_of(common_settings.JOB + SETTINGS))


def mirror_of(config: Config) -> MirrorConfig:
    """As mirror.toml would make it. Raises Wrong."""
    return of_document(_document(config), Path.cwd())


def problems_of(config: Config) -> dict[str, str]:
    """{setting: what is wrong}. No file is read, and no secret is looked for."""
    found = {name: why for name in config.given if (why := _unknown(name)) is not None}
    if not config["topics"] and not config.get("topics.pattern"):
        found["topics"] = "no topic is named: give topics, or a topics.pattern"
    target = config.get("topics.target", "{topic}")
    if "{topic}" not in target and len(config["topics"]) > 1:
        found["topics.target"] = f"{target!r} is one topic for many; write {{topic}} in it"
    if config.with_prefix("target.") and not config.get(f"target.{_BROKERS}"):
        found[f"target.{_BROKERS}"] = f"a target of its own needs target.{_BROKERS}"
    if found:
        return found
    document = _document(config)
    for side in _SIDES:
        document[side] = _without_secrets(config.with_prefix(f"{side}."))
    try:
        of_document(document, Path.cwd())
    except Wrong as error:
        name = _setting(error)
        found[name] = f"{name}: {str(error).removeprefix(f'{named(error.path)}: ')}"
    return found


def _document(config: Config) -> dict[str, object]:
    """The sections of a mirror.toml that says the same."""
    sections: dict[str, dict[str, object]] = {}
    for name, value in config.values.items():
        section, _, key = name.partition(".")
        if section in _SECTIONS and value is not None:
            sections.setdefault(section, {})[key] = list(value) if isinstance(value, tuple) else value
    mirror = sections.setdefault("mirror", {})
    mirror.setdefault("name", config.name)
    mirror["tasks"] = config[common_settings.TASKS_MAX]
    mirror["trigger"] = f"{config[common_settings.POLL_INTERVAL]}ms"
    return {
        **sections,
        "source": config.with_prefix("source."),
        "target": config.with_prefix("target.") or dict(config.kafka),
        "topics": _topics(config),
    }


def _topics(config: Config) -> list[dict[str, object]]:
    target = {"target": found} if (found := config.get("topics.target")) is not None else {}
    rules: list[dict[str, object]] = [{"name": name, **target} for name in config["topics"]]
    pattern, exclude = config.get("topics.pattern"), config.get("topics.exclude")
    if pattern is not None:
        left_out = {} if exclude is None else {"exclude": list(exclude)}
        rules.append({"pattern": pattern, **left_out, **target})
    return rules


def _without_secrets(given: Mapping[str, str]) -> dict[str, object]:
    """What a worker can judge that may not be the one that runs it."""
    is_elsewhere = any("${" in value or value == HIDDEN for value in given.values())
    if "command_config" in given or is_elsewhere or not given:
        return {_BROKERS: _SOMEWHERE}
    return dict(given)


def _unknown(name: str) -> str | None:
    """A name that is mistyped must not be passed over: a mirror would carry too much, or too little."""
    if name in _OWN or name.startswith(tuple(f"{side}." for side in _SIDES)):
        return None
    if _LOSS.search(name):
        return (
            f"{name} counts for one start, and a connector starts with the same settings each time. Stop the "
            "connector, let `headrace mirror run --once --accept-loss earliest` (or latest) go on behind "
            "what is lost, and resume it"
        )
    if name in _INSTEAD:
        return f"{name} is no setting of a mirror: {_INSTEAD[name]}"
    if name.startswith("spark."):
        return f"{name}: the session is the worker's; say it there, with --spark"
    close = difflib.get_close_matches(name, sorted(_OWN), 1)
    return f"{name} is no setting of a mirror" + (f"; did you mean {close[0]}?" if close else "")


def _setting(error: Wrong) -> str:
    """Which setting of the connector stands for a place in the file."""
    section, *rest = map(str, error.path)
    if section in _SIDES:
        return f"{section}.{_BROKERS}"
    if section == "topics":
        key = rest[-1] if rest else "name"
        return "topics" if key in ("name", "topics") or key.isdecimal() else f"topics.{key}"
    return ".".join((section, *rest))
