"""The settings that every connector has, whoever wrote it. Names and defaults are Kafka Connect's."""

from __future__ import annotations

from typing import Final

from headrace.connect.settings import Importance, Kind, Setting, Settings

NAME: Final = "name"
CLASS: Final = "connector.class"
PLUGIN_VERSION: Final = "connector.plugin.version"
TASKS_MAX: Final = "tasks.max"
TOPICS: Final = "topics"
TOPICS_REGEX: Final = "topics.regex"
POLL_INTERVAL: Final = "poll.interval.ms"
BATCH_RECORDS: Final = "batch.max.records"
BATCH_LINGER: Final = "batch.linger.ms"
TOLERANCE: Final = "errors.tolerance"
DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
KEY_CONVERTER: Final = "key.converter"
VALUE_CONVERTER: Final = "value.converter"

_LOW, _HIGH = Importance.LOW, Importance.HIGH
_COMMON, _ERRORS = "Common", "Error Handling"

COMMON: Final = Settings(
    Setting(
        NAME,
        doc="A name for the connector that no other one on this cluster has.",
        importance=_HIGH,
        group=_COMMON,
        display="Connector name",
    ),
    Setting(
        CLASS,
        doc="What kind of connector it is: an entry point's name, a class, or the last part of its name.",
        importance=_HIGH,
        group=_COMMON,
        display="Connector class",
    ),
    Setting(
        PLUGIN_VERSION,
        default=None,
        doc="Which version of the connector: there is one, the installed one.",
        group=_COMMON,
        display="Connector version",
    ),
    Setting(
        TASKS_MAX,
        Kind.INT,
        1,
        "How many tasks may work on it at the same time.",
        _HIGH,
        least=1,
        group=_COMMON,
        display="Tasks max",
    ),
    Setting(
        KEY_CONVERTER,
        Kind.CLASS,
        None,
        "Between a connector's keys and the bytes in a topic: JsonConverter, StringConverter or "
        "ByteArrayConverter, with or without the package in front. Without one, bytes stay as they are.",
        _LOW,
        group=_COMMON,
        display="Key converter class",
    ),
    Setting(
        VALUE_CONVERTER,
        Kind.CLASS,
        None,
        "The same for values.",
        _LOW,
        group=_COMMON,
        display="Value converter class",
    ),
    Setting(
        POLL_INTERVAL,
        Kind.INT,
        1000,
        "How long to wait before asking again, after nothing new was found.",
        _LOW,
        least=10,
        group=_COMMON,
        display="Poll interval",
    ),
    Setting(
        "errors.retry.timeout",
        Kind.LONG,
        -1,
        "For how many milliseconds a failing connector is started again by itself; -1: for ever, 0: never.",
        Importance.MEDIUM,
        least=-1,
        group=_ERRORS,
        display="Retry timeout for errors",
    ),
    Setting(
        "errors.retry.delay.max.ms",
        Kind.LONG,
        60000,
        "The longest time between two attempts. The first comes after a second, each next one after twice "
        "the time.",
        Importance.MEDIUM,
        least=1,
        group=_ERRORS,
        display="Maximum delay between retries",
    ),
    Setting(
        TOLERANCE,
        default="none",
        doc="none: a record that cannot be handled stops the connector. all: it becomes a dead letter, and "
        "the connector goes on.",
        one_of=("none", "all"),
        group=_ERRORS,
        display="Error tolerance",
    ),
)

SOURCE: Final = COMMON

#: A job converts no records, and leaves none out.
JOB: Final = Settings(
    *(each for each in COMMON if each.name not in (KEY_CONVERTER, VALUE_CONVERTER, TOLERANCE))
)

SINK: Final = COMMON + Settings(
    Setting(
        TOPICS,
        Kind.LIST,
        (),
        "Topics to read, with commas between them.",
        _HIGH,
        group=_COMMON,
        display="Topics",
    ),
    Setting(
        TOPICS_REGEX,
        default="",
        doc="Topics to read: those whose whole name matches this regular expression, also when they are made "
        "later. Instead of `topics`.",
        importance=_HIGH,
        group=_COMMON,
        display="Topics regex",
    ),
    Setting(
        BATCH_RECORDS,
        Kind.INT,
        500_000,
        "How many records one batch has at most.",
        _LOW,
        least=1,
        group=_COMMON,
        display="Largest batch",
    ),
    Setting(
        BATCH_LINGER,
        Kind.INT,
        0,
        "How long a batch that is not full waits for more records after its first one.",
        _LOW,
        least=0,
        group=_COMMON,
        display="Linger",
    ),
    Setting(
        DEAD_LETTERS,
        default="",
        doc="Where dead letters go: a topic. Empty: they are counted and left out.",
        group=_ERRORS,
        display="Dead Letter Queue Topic Name",
    ),
    Setting(
        "errors.deadletterqueue.topic.replication.factor",
        Kind.INT,
        3,
        "How many replicas the topic of dead letters gets when it is made; no more than there are brokers.",
        least=1,
        group=_ERRORS,
        display="Dead Letter Queue Topic Replication Factor",
    ),
    Setting(
        "errors.deadletterqueue.context.headers.enable",
        Kind.BOOLEAN,
        False,
        "Whether a dead letter's headers say where it comes from and why it was refused.",
        group=_ERRORS,
        display="Enable Error Context Headers",
    ),
)
