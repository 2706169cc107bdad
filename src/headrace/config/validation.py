"""What may be set at run time: on a topic, on one broker, on all brokers.

The blame is the client's, so the errors are a client's: a bad topic setting is InvalidConfig, a bad
broker setting InvalidRequest, because those are the codes that Kafka answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.config.broker import ALIASES, BROKER_PROPERTIES, nearest
from headrace.config.property import UpdateMode
from headrace.config.protection import scope_of
from headrace.config.topic_properties import TOPIC_PROPERTIES
from headrace.config.values import LONG_MAX
from headrace.core.errors import InvalidConfig, InvalidRequest


def validate_topic_overrides(overrides: Mapping[str, str]) -> None:
    """All of a topic's own settings, as they would stand after the change."""
    values: dict[str, Any] = {}
    for name, text in overrides.items():
        declared = TOPIC_PROPERTIES.get(name)
        if declared is None:
            near = nearest(
                name, [known for known, known_as in TOPIC_PROPERTIES.items() if not known_as.internal]
            )
            hint = f"; did you mean {near}?" if near else ""
            raise InvalidConfig(f"{name} is not a topic property{hint}")
        try:
            values[name] = declared.parse(text)
        except ValueError as error:
            raise InvalidConfig(str(error)) from None
    least = values.get("min.compaction.lag.ms", 0)
    most = values.get("max.compaction.lag.ms", LONG_MAX)
    if least > most:
        raise InvalidConfig(f"min.compaction.lag.ms={least} is above max.compaction.lag.ms={most}")


def validate_broker_dynamic(settings: Mapping[str, str], *, for_one_broker: bool) -> None:
    """Settings of one broker, or of the cluster's brokers together.

    An unknown name is let through, as Kafka does: plug-ins of another version may own it. Not one that asks
    for protection, say the password of one listener's key store: it would have no effect, and would be
    stored where everybody who follows the metadata reads it.
    """
    for given_name, text in settings.items():
        name = ALIASES.get(given_name, given_name)
        declared = BROKER_PROPERTIES.get(name)
        if declared is None and scope_of(name) is None:
            continue
        if declared is None or declared.update is UpdateMode.READ_ONLY:
            raise InvalidRequest(
                f"{name} cannot change while the broker runs; set it in the broker's file and restart it"
            )
        if declared.update is UpdateMode.PER_BROKER and not for_one_broker:
            raise InvalidRequest(f"{name} belongs to one broker; set it with that broker's id")
        try:
            declared.parse(text)
        except ValueError as error:
            raise InvalidRequest(str(error)) from None
