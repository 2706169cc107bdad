"""Do the numbers agree? What was sent, what each station has, and the shop's own books beside the table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from clickstream.auditing import TOPICS, Audit
from clickstream.shop import Shop
from clickstream.topics import PAGE_TRAFFIC, PAGE_VIEWS
from clickstream.trading import Trading
from headrace.spark import Decoding, Format, read_topic


@dataclass(frozen=True)
class Station:
    """One topic on its way. All four agree, or something was lost or doubled."""

    topic: str
    sent: int
    in_lake: int
    dead_letters: int
    certified: int
    windows: int

    @property
    def agrees(self) -> bool:
        return self.sent == self.in_lake + self.dead_letters == self.certified


@dataclass(frozen=True)
class Proof:
    stations: tuple[Station, ...]
    #: Orders of the shop's books, of the table, and those of either that the other does not have the same.
    orders: int
    in_table: int
    table_differs: int
    #: Windows of the running aggregate that are over, their views, and the same counted in the lake.
    traffic_windows: int
    traffic: int
    traffic_in_lake: int

    @property
    def holds(self) -> bool:
        return (
            all(station.agrees for station in self.stations)
            and self.orders == self.in_table
            and self.table_differs == 0
            and self.traffic == self.traffic_in_lake
        )


def prove(spark: SparkSession, trading: Trading, audit: Audit, lake: Path, orders: DataFrame) -> Proof:
    stations = []
    for topic in TOPICS:
        certified = audit.certified(topic)
        stations.append(
            Station(
                topic,
                trading.stored[topic],
                _rows(spark, lake / topic),
                _rows(spark, lake / f"{topic}_dead_letters"),
                sum(verdict.tiers["producers"].count for verdict in certified),
                len(certified),
            )
        )
    books = of_the_books(spark, trading.shop)
    differs = books.exceptAll(orders).count() + orders.exceptAll(books).count()
    windows = windows_that_are_over(spark, trading.bootstrap)
    over = windows.agg(F.countDistinct("since"), F.sum("views")).first()
    assert over is not None
    return Proof(
        tuple(stations),
        len(trading.shop.orders),
        orders.count(),
        differs,
        over[0],
        over[1] or 0,
        _counted_in_lake(spark, lake / PAGE_VIEWS, windows),
    )


def of_the_books(spark: SparkSession, shop: Shop) -> DataFrame:
    rows = [
        (number, order.customer, order.status, order.items, order.total)
        for number, order in shop.orders.items()
    ]
    return spark.createDataFrame(
        rows, "order string, customer string, status string, items int, total decimal(10, 2)"
    )


def windows_that_are_over(spark: SparkSession, bootstrap: str) -> DataFrame:
    """What the running aggregate has written: since, page, views."""
    total = Decoding(Format.JSON, schema="page string, since timestamp, views bigint")
    return read_topic(spark, PAGE_TRAFFIC, kafka={"bootstrap.servers": bootstrap}, decoding=total)


def _counted_in_lake(spark: SparkSession, table: Path, windows: DataFrame) -> int:
    """The views in the lake of those windows: read by another way than the aggregate's."""
    views = spark.read.format("delta").load(str(table))
    since = F.window("timestamp", "5 seconds")["start"].alias("since")
    return views.select(since).join(windows.select("since").distinct(), "since").count()


def _rows(spark: SparkSession, table: Path) -> int:
    return spark.read.format("delta").load(str(table)).count() if table.exists() else 0
