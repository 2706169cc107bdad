"""`headrace query SQL`: topics as tables of DuckDB."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.options import bootstrap_of, bootstrap_option, client_properties
from headrace.cli.progress import ProgressLine
from headrace.cli.render import print_json_line, print_table, printable
from headrace.cli.values import counted

if TYPE_CHECKING:
    from headrace.arrow.query import Result

SHOWN_ROWS = 1000


@click.command()
@click.argument("sql")
@click.option(
    "--files",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="Read past the brokers: their log directory, or a partition's folder. May be repeated.",
)
@click.option("--tier", metavar="BUCKET_URL", help="Read the history in an object store: s3://BUCKET/PREFIX.")
@click.option("--endpoint", metavar="URL", help="With --tier: of a store that is not Amazon's.")
@click.option("--region", metavar="NAME", help="With --tier: of an S3 bucket; by default AWS_REGION.")
@click.option(
    "-p", "--partition", type=click.IntRange(0), multiple=True, help="Only this one; may be repeated."
)
@click.option("--start-time", metavar="TIME", help="Only records of this time or later: ISO or milliseconds.")
@click.option("--end-time", metavar="TIME", help="Only records before this time.")
@click.option("--memory", default="1GB", show_default=True, metavar="SIZE", help="That DuckDB may take.")
@click.option(
    "-o", "--output", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True
)
@bootstrap_option
def query(
    sql: str,
    files: tuple[str, ...],
    tier: str | None,
    endpoint: str | None,
    region: str | None,
    partition: tuple[int, ...],
    start_time: str | None,
    end_time: str | None,
    memory: str,
    output: str,
    bootstrap: str,
) -> None:
    """Answer SQL, one SELECT, with topics as its tables.

    A topic has the columns key, value, topic, partition, offset, timestamp, timestampType and headers. Keys
    and values are bytes: `decode(value)` makes text of them, and `decode(value)::json ->> 'id'` finds a
    field. Quote "offset", and names of topics with dots or dashes. Only the columns that the query names are
    decoded, only committed records come, and each topic is read to the end that it has at that moment.

    -o json prints a line for each row, -o csv all rows; a table has the first 1000.
    """
    from headrace.arrow.query import Database
    from headrace.arrow.topic import Topic, TopicOptions, open_topic

    options: TopicOptions = {
        "bootstrap": bootstrap_of(bootstrap),
        "properties": client_properties(),
        "files": files or None,
        "tier": tier,
        "endpoint": endpoint,
        "region": region,
        "partitions": partition or None,
        "start_time": start_time,
        "end_time": end_time,
    }

    def opened(name: str) -> Topic:
        return open_topic(name, **options)

    read = 0
    with ProgressLine() as progress:

        def on_read(rows: int) -> None:
            nonlocal read
            read += rows
            progress.tell(f"{counted(read, 'record')} read")

        database = Database(memory, opened, on_read)
        try:
            result = database.run(sql)
            {"table": _as_table, "json": _as_json, "csv": _as_csv}[output](result)
        finally:
            database.close()


def _rows(result: Result) -> Iterator[tuple[Any, ...]]:
    for batch in result.batches:
        columns = [column.to_pylist() for column in batch.columns]
        yield from zip(*columns, strict=True)


def _plain(value: Any) -> Any:
    """Bytes as text where they are text."""
    if isinstance(value, bytes):
        return printable(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value


def _as_table(result: Result) -> None:
    rows: list[list[Any]] = []
    for row in _rows(result):
        if len(rows) == SHOWN_ROWS:
            click.echo(f"only the first {SHOWN_ROWS} rows are shown: -o json or -o csv gives all", err=True)
            break
        rows.append([_plain(value) for value in row])
    print_table(result.columns, rows, empty="no rows")


def _as_json(result: Result) -> None:
    for row in _rows(result):
        print_json_line({name: _plain(value) for name, value in zip(result.columns, row, strict=True)})


def _as_csv(result: Result) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(result.columns)
    for row in _rows(result):
        writer.writerow([_plain(value) for value in row])
