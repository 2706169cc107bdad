"""What `read_topic` and `stream_topic` were asked for, checked before anything is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, get_args

from headrace.core.errors import ConfigError, HeadraceError
from headrace.spark.connector import reader_settings
from headrace.spark.kafka_properties import KafkaProperties

#: What to do when records that were not read are gone, or a topic was deleted and made anew.
OnLoss = Literal["fail", "earliest", "latest"]
#: What becomes of a record that cannot be decoded: a row with its `problem`, no row, or the end of the query.
Undecodable = Literal["keep", "drop", "fail"]
#: Where to begin: `group` means behind what the group has committed. A time is compared with the records'
#: timestamps. Partitions that a mapping does not name are read from their beginning.
Start = Literal["earliest", "latest", "group"] | datetime | Mapping[str, Mapping[int, int]]
End = Literal["latest"] | datetime | Mapping[str, Mapping[int, int]]

_OURS: Final = {
    "group.id": "say group=... instead: it is the group that the offsets are committed to",
    "enable.auto.commit": "leave it out: offsets are committed when a batch is done",
    "auto.offset.reset": "say start=... for the beginning and on_loss=... for what is gone",
    "key.deserializer": "leave it out: records come as bytes, and decoding=... makes columns of them",
    "value.deserializer": "leave it out: records come as bytes, and decoding=... makes columns of them",
    "interceptor.classes": "leave it out: the connector cannot use interceptors",
}


class SourceRefused(HeadraceError):
    """Cannot be done as it was asked for; says what to change."""


@dataclass(frozen=True)
class Wish:
    """Topics, and how to reach and to follow them."""

    topics: tuple[str, ...]
    kafka: Mapping[str, str]
    """As KafkaProperties, whatever it was given as."""
    group: str | None = None
    on_loss: OnLoss = "fail"
    max_records: int | None = None
    max_bytes: int | None = None
    min_partitions: int | None = None

    def __post_init__(self) -> None:
        if not self.topics or not all(self.topics):
            raise SourceRefused("name a topic, or several")
        try:
            object.__setattr__(self, "kafka", KafkaProperties(self.kafka))
        except ConfigError as error:
            raise SourceRefused(f"kafka: {error}") from None
        if not self.kafka.get("bootstrap.servers"):
            raise SourceRefused('say where the brokers are: kafka="host:9092"')
        for name, instead in _OURS.items():
            if name in self.kafka:
                raise SourceRefused(f"kafka[{name!r}]: {instead}")
        if self.on_loss not in get_args(OnLoss):
            raise SourceRefused(f"on_loss is one of {', '.join(get_args(OnLoss))}, not {self.on_loss!r}")
        if self.group == "":
            raise SourceRefused("a group needs a name; leave it out where no offsets are to be committed")
        for limit in ("max_records", "max_bytes", "min_partitions"):
            value: int | None = getattr(self, limit)
            if value is not None and value < 1:
                raise SourceRefused(f"{limit} is at least 1, not {value}")

    @property
    def client(self) -> KafkaProperties:
        """For Kafka's clients. Only committed records are read unless the user says otherwise."""
        return KafkaProperties({"isolation.level": "read_committed", **self.kafka})

    @property
    def committed_only(self) -> bool:
        return self.client["isolation.level"] == "read_committed"

    def connector(self) -> dict[str, str]:
        """For Spark's connector, but for where to begin and to end."""
        options = reader_settings(self.client) | {
            "subscribe": ",".join(self.topics),
            "includeHeaders": "true",
            "failOnDataLoss": str(self.on_loss == "fail").lower(),
        }
        if self.min_partitions is not None:
            options["minPartitions"] = str(self.min_partitions)
        return options


def properties(kafka: Mapping[str, str] | str) -> Mapping[str, str]:
    """A text is where the brokers are."""
    return {"bootstrap.servers": kafka} if isinstance(kafka, str) else kafka


def names(topic: str | Sequence[str]) -> tuple[str, ...]:
    return (topic,) if isinstance(topic, str) else tuple(topic)


def check_undecodable(choice: Undecodable) -> None:
    if choice not in get_args(Undecodable):
        raise SourceRefused(f"undecodable is one of {', '.join(get_args(Undecodable))}, not {choice!r}")
