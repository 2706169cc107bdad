"""Why a backfill does not begin, or ends: in sentences that say what works."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import StructType

from headrace.arrow.errors import HistoryGone
from headrace.arrow.history import History
from headrace.core.errors import HeadraceError
from headrace.spark.decoding.formats import Format
from headrace.spark.lake.files import for_people, is_local
from headrace.spark.lake.plan import Route
from headrace.spark.lake.table_schema import Following
from headrace.spark.lake.tables.landing import Landing, Unsuitable

_IN_A_BUCKET: Final = "what is before may be in a bucket, and --tier reads it there"


class BackfillFailed(HeadraceError):
    """What is in the table stays, and counts."""


def check_format(route: Route) -> None:
    if route.decoding.format is not Format.BYTES:
        raise BackfillFailed(
            f"{route.table} has values decoded from {route.decoding.format}, and a backfill decodes none. "
            f"`headrace lake run` loads and decodes history too, through the brokers; or give the topic "
            'format = "bytes", and decode the value where the table is read'
        )


def lake_has_begun(route: Route) -> BackfillFailed:
    return BackfillFailed(
        f"`headrace lake run` loads {route.topic} already, its history included: a backfill comes before its "
        f"first start. To begin anew, remove the tables {route.table} and {route.dead_letters}, and "
        f"{for_people(route.state)}"
    )


def table_has_rows(route: Route, table: str) -> BackfillFailed:
    return BackfillFailed(
        f"{table} has records of {route.topic} already, which would be there twice: `headrace lake run` goes "
        "on behind them. To begin anew, remove the table first"
    )


def not_begun(route: Route) -> BackfillFailed:
    return BackfillFailed(f"no backfill of {route.topic} has begun: `headrace lake run` loads all of it")


def records_gone(history: History, first: int) -> BackfillFailed:
    return BackfillFailed(
        f"records of {history.partition} from offset {first} up to {history.start} were deleted before they "
        'were loaded. To go on with what there is, set on_data_loss = "continue" below [lake]'
    )


def not_whole(history: History, brokers: int) -> BackfillFailed:
    return BackfillFailed(
        f"the directories have {history.partition} from offset {history.start} on, and the brokers from "
        f"{brokers}: {_IN_A_BUCKET}"
    )


def begins_elsewhere(gone: HistoryGone) -> BackfillFailed:
    """The broker's own checkpoint says that the log begins before its files do."""
    return BackfillFailed(f"the directories are not the whole history: {gone}. {_IN_A_BUCKET.capitalize()}")


def check_columns(table: str, incoming: StructType, following: Following) -> None:
    """The table's columns of the records have exactly the types in which files are written."""
    for conflict in following.conflicts:
        raise Unsuitable(f"{table} cannot take the records: {conflict.reason}")
    types = {field.name: field.dataType for field in following.schema.fields}
    for field in incoming.fields:
        if types[field.name].simpleString() != field.dataType.simpleString():
            raise Unsuitable(
                f"{table} has {field.name} as {types[field.name].simpleString()}, and a backfill writes "
                f"{field.dataType.simpleString()}; `headrace lake run` can load it"
            )


def check_landing(landing: Landing) -> None:
    if not is_local(landing.directory):
        raise Unsuitable(
            f"a backfill writes to file systems that all machines have as a directory, and the table is in "
            f"{landing.directory}; `headrace lake run` loads the history there too, through the brokers"
        )
