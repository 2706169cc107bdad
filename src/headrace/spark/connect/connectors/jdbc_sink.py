"""Records as rows of any database with a JDBC driver, by key. Spark writes a batch into tables of its own
beside the targets; one transaction then makes rows of them, and says how far the connector is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from headrace.connect.api import Batch, Config, Settings, Sink
from headrace.connect.settings import Importance, Kind, Setting
from headrace.core.ids import TopicPartition

if TYPE_CHECKING:
    from headrace.spark.connect.jdbc_batch import Writing

_HIGH = Importance.HIGH


class JdbcSink(Sink):
    settings: ClassVar[Settings] = Settings(
        Setting("connection.url", doc="jdbc:mariadb://HOST/DATABASE and so on.", importance=_HIGH),
        Setting("connection.user", default="", doc="Who logs in.", importance=_HIGH),
        Setting("connection.password", Kind.PASSWORD, "", "With which password.", _HIGH),
        Setting("connection.driver", default="", doc="The driver's class, where its jar does not say it."),
        Setting(
            "table.name.format",
            default="${topic}",
            doc="The table of a topic: ${topic} is the topic, ${table} its last two parts, as in "
            "PREFIX.SCHEMA.TABLE.",
            importance=_HIGH,
        ),
        Setting(
            "insert.mode",
            default="upsert",
            doc="upsert: a record replaces the row of its key. insert: each is a row of its own, and one "
            "whose key is there already is refused.",
            one_of=("upsert", "insert"),
            importance=_HIGH,
        ),
        Setting(
            "pk.mode",
            default="record_key",
            doc="record_key: the columns of the key are the record's key, or in its value if it has none. "
            "none: with insert.mode=insert, the record's key does not matter.",
            one_of=("record_key", "none"),
            importance=_HIGH,
        ),
        Setting("pk.fields", Kind.LIST, (), "The columns of the key; without it the table's primary key."),
        Setting(
            "delete.enabled", Kind.BOOLEAN, True, "Whether a record without value deletes the row of its key."
        ),
        Setting(
            "positions.table",
            default="headrace_jdbc_positions",
            doc="Where the connector keeps how far it is; made if it is missing.",
            importance=Importance.LOW,
        ),
    )

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._opened: Writing | None = None

    @classmethod
    def check(cls, config: Config) -> Mapping[str, str]:
        found = {}
        if not config.text("connection.url").startswith("jdbc:"):
            found["connection.url"] = "it begins with jdbc:"
        if config.text("pk.mode") == "none" and config.text("insert.mode") != "insert":
            found["pk.mode"] = "without a key nothing can be replaced: set insert.mode to insert"
        if config.text("pk.mode") == "none" and config["pk.fields"]:
            found["pk.fields"] = "there are none with pk.mode=none"
        return found

    def position(self) -> Mapping[TopicPartition, int]:
        return self._writing.begin()

    def alter_position(self, ends: Mapping[TopicPartition, int | None]) -> None:
        self._writing.alter(ends)

    def write(self, batch: Batch) -> None:
        self._writing.write(batch)

    def stop(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @property
    def _writing(self) -> Writing:
        if self._opened is None:
            from headrace.spark.connect.jdbc_batch import Writing

            self._opened = Writing(self.config)
        return self._opened
