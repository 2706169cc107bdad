"""The options of `format("headrace")`, checked before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.security_properties import SECURITY_PROPERTIES, refuse_foreign
from headrace.core.errors import ConfigError, HeadraceError
from headrace.protocol.compression import Compression
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.sink.decision import SinkFailure
from headrace.spark.sink.naming import SINK_ID, sink_id_from

DEFAULT_DECISIONS: Final = "__headrace_sink"
_KNOWN: Final = (
    "topic", "sink.id", "decisions.topic", "batch.bytes", "compression", "compression.level", "checksum",
    "delivery.timeout.ms", "job.id",
)  # fmt: skip
_OF_SPARK: Final = ("checkpointlocation", "path", "querycontext", "querytype", "queryname", "outputmode")
_KAFKA: Final = {
    "bootstrap.servers": None,
    "client.id": None,
    "request.timeout.ms": None,
    # What others say in Java's words and this sink says in its own.
    "compression.type": "compression",
    "delivery.timeout.ms": "delivery.timeout.ms",
    "max.request.size": "batch.bytes",
}
_IGNORED: Final = frozenset(
    ("acks", "enable.idempotence", "linger.ms", "batch.size", "retries", "max.block.ms")
)
"""A transaction settles these, or nothing depends on them."""
_LARGEST_BATCH: Final = 100 * 1024 * 1024


class Options(NamedTuple):
    bootstrap: str
    sink: str | None
    """None for a job that names none: it is known to nobody before and after it."""
    topic: str | None = None
    job: str | None = None
    decisions: str = DEFAULT_DECISIONS
    batch_bytes: int = 900_000
    """Below the million that a topic takes by default (max.message.bytes)."""
    compression: Compression = Compression.NONE
    compression_level: int | None = None
    checksum: bool | None = None
    """None: only where transactions can time out, since only then a lost one must be known again."""
    client_id: str = "headrace-sink"
    request_timeout: float = 30.0
    delivery_timeout: float = 120.0
    protection: KafkaProperties = KafkaProperties()
    """How to connect: what begins with `security.`, `ssl.` and `sasl.`."""

    def cluster(self) -> Cluster:
        return Cluster(
            self.bootstrap,
            client_id=self.client_id,
            request_timeout=self.request_timeout,
            security=self.protection.security(),
        )


def parse_options(given: Mapping[str, str], *, streaming: bool) -> Options:
    """Raises SinkFailure with what to do. Names are compared without case, as Spark does."""
    options = {name.lower(): value for name, value in given.items()}
    kafka = {name[len("kafka.") :]: value for name, value in options.items() if name.startswith("kafka.")}
    own = {name: value for name, value in options.items() if not name.startswith("kafka.")}
    _check_names(own, kafka)
    for name, ours in _KAFKA.items():
        if ours is not None and name in kafka:
            own.setdefault(ours, kafka[name])
    bootstrap = kafka.get("bootstrap.servers", "")
    if not bootstrap:
        raise SinkFailure('say where the brokers are: .option("kafka.bootstrap.servers", "host:9092")')
    return Options(
        bootstrap=bootstrap,
        sink=_sink(own, streaming=streaming),
        topic=own.get("topic"),
        job=own.get("job.id"),
        decisions=own.get("decisions.topic", DEFAULT_DECISIONS),
        batch_bytes=_number(own, "batch.bytes", 900_000, 1_000, _LARGEST_BATCH),
        compression=_compression(own.get("compression", "none")),
        compression_level=_number(own, "compression.level", 0, -100, 22)
        if "compression.level" in own
        else None,
        checksum=_checksum(own.get("checksum", "auto")),
        client_id=kafka.get("client.id", "headrace-sink"),
        request_timeout=_number(kafka, "request.timeout.ms", 30_000, 1, 3_600_000) / 1000,
        delivery_timeout=_number(own, "delivery.timeout.ms", 120_000, 1, 86_400_000) / 1000,
        protection=_protection(kafka),
    )


def _protection(kafka: Mapping[str, str]) -> KafkaProperties:
    """Read here already, so that a mistake is told before a task starts."""
    try:
        found = KafkaProperties({name: kafka[name] for name in kafka if name in SECURITY_PROPERTIES})
        found.security()
    except ConfigError as error:
        raise SinkFailure(f"kafka: {error}") from None
    return found


def _check_names(own: Mapping[str, str], kafka: Mapping[str, str]) -> None:
    for name in own:
        if name not in _KNOWN and name not in _OF_SPARK:
            raise SinkFailure(f"the sink has no option {name!r}; it has: {', '.join(_KNOWN)}")
    try:
        refuse_foreign(kafka)
    except ConfigError as error:
        raise SinkFailure(f"kafka: {error}") from None
    for name in kafka:
        if name in ("transactional.id", "transaction.timeout.ms"):
            raise SinkFailure(f"leave kafka.{name} out: the sink names its transactions itself")
        if name not in _KAFKA and name not in _IGNORED and name not in SECURITY_PROPERTIES:
            raise SinkFailure(
                f"the sink does not know kafka.{name}; behind kafka. it knows: {', '.join(_KAFKA)}, and of "
                f"security {', '.join(sorted(SECURITY_PROPERTIES))}"
            )


def _sink(own: Mapping[str, str], *, streaming: bool) -> str | None:
    sink = own.get("sink.id")
    if sink is not None:
        if not SINK_ID.fullmatch(sink):
            raise SinkFailure(f"sink.id {sink!r}: use 1 to 100 letters, digits, '.', '_' and '-'")
        return sink
    if not streaming:
        if "job.id" in own:
            raise SinkFailure("a job.id belongs to a sink: give a sink.id too")
        return None
    checkpoint = own.get("checkpointlocation")
    if checkpoint is None:
        raise SinkFailure(
            "the sink needs a name that stays the same when the query is started again: give "
            '.option("sink.id", NAME), or .option("checkpointLocation", PATH), from which one is made'
        )
    return sink_id_from(checkpoint)


def _number(options: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = options.get(name)
    if text is None:
        return default
    try:
        number = int(text)
    except ValueError:
        raise SinkFailure(f"{name} is a number, not {text!r}") from None
    if not least <= number <= most:
        raise SinkFailure(f"{name} is between {least} and {most}, not {number}")
    return number


def _compression(text: str) -> Compression:
    try:
        return Compression.named(text)
    except HeadraceError:
        names = ", ".join(each.name.lower() for each in Compression)
        raise SinkFailure(f"compression {text!r} is not known; it is one of: {names}") from None


def _checksum(text: str) -> bool | None:
    if text not in ("auto", "always", "never"):
        raise SinkFailure(f"checksum is auto, always or never, not {text!r}")
    return {"auto": None, "always": True, "never": False}[text]
