"""Whether a topic is still the one that a table is made from.

Offsets do not tell: a topic that was deleted and made anew may have grown past them. Its id tells. There is
no going on with another topic: its records have smaller offsets than the rows of the old one, and would lose
to them. So the table asks for a rebuild, whatever `on_data_loss` says.
"""

from __future__ import annotations

from contextlib import closing

from pyspark.sql import SparkSession

from headrace.spark.lake.config import LakeConfig
from headrace.spark.source.brokers import Brokers
from headrace.spark.source.options import Wish
from headrace.spark.table.config import TableSpec
from headrace.spark.table.plan import NeedsRebuild


def topic_id(spark: SparkSession, store: LakeConfig, topic: str) -> str | None:
    """None where the topic is not there, or brokers have no ids."""
    # The one setting that the connector takes and the source does not. An id is the same for any group.
    client = {name: value for name, value in store.kafka.items() if name != "group.id"}
    with closing(Brokers(spark, Wish((topic,), client))) as brokers:
        return brokers.topic_ids().get(topic)


def check_topic(spec: TableSpec, known: str | None, found: str | None) -> None:
    """A topic that is not there just now is not another one."""
    if known is not None and found is not None and known != found:
        raise NeedsRebuild(
            f"topic {spec.topic} was deleted and made anew: {spec.name} has rows of the old one, and its "
            f"offsets mean nothing in the new one. Run `headrace table rebuild {spec.name}`"
        )
