"""`headrace log ...`: the files of a log, without a broker."""

from __future__ import annotations

import click

from headrace.cli.options import json_option, pairs
from headrace.cli.render import print_json, print_json_line, print_table


@click.group()
def log() -> None:
    """Look into files of a log, verify them; adopt those of Apache Kafka."""


@log.command()
@click.argument("paths", metavar="FILE|DIR...", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--records", is_flag=True, help="Also the records inside the batches.")
@json_option
def dump(paths: tuple[str, ...], records: bool, as_json: bool) -> int:
    """Print what .log, .index, .timeindex, .txnindex, .snapshot and metadata files hold.

    With --json, one line for each entry. The exit code is 1 if anything is broken.
    """
    from headrace.cli.log_files import find_files, read_file

    broken = False
    for path in find_files(paths):
        if not as_json:
            click.echo(f"== {path}")
        for entry in read_file(path, records=records):
            broken = broken or entry["kind"] == "fault"
            if as_json:
                print_json_line({"file": str(path), **entry})
            else:
                click.echo(_line(entry), err=entry["kind"] == "fault")
    return int(broken)


def _line(entry: dict[str, object]) -> str:
    kind = entry["kind"]
    fields = " ".join(f"{name}={_shown(value)}" for name, value in entry.items() if name != "kind")
    if kind == "fault":
        return f"error: {entry['error']}"
    return f"  {fields}" if kind == "record" else fields


def _shown(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return repr(value) if not value or any(c.isspace() or not c.isprintable() for c in value) else value
    return str(value)


@log.command()
@click.argument("path", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@json_option
def verify(path: str, as_json: bool) -> int:
    """Check a log directory, or one partition's folder, of a broker that is stopped. Only reads.

    Every batch is read and compared with its checksum, with the offsets around it, with the manifest, the
    checkpoints and the indexes. The exit code is 0 if everything is whole, 1 if anything is damaged.
    """
    from headrace.cli.log_verify import verify_directory

    return verify_directory(path, as_json=as_json)


@log.command()
@click.argument(
    "paths", metavar="DIR...", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False)
)
@click.option(
    "--to", "data_directory", required=True, type=click.Path(file_okay=False), help="The broker's log dir."
)
@click.option(
    "--broker-id", type=click.IntRange(0), default=1, show_default=True, help="For a new log dir only."
)
@click.option(
    "-c", "--config", "settings", multiple=True, callback=pairs, metavar="NAME=VALUE", help="A topic setting."
)
@json_option
def adopt(
    paths: tuple[str, ...], data_directory: str, broker_id: int, settings: dict[str, str], as_json: bool
) -> None:
    """Copy partitions written by Apache Kafka into the log dir of a broker that is stopped.

    DIR is a partition's directory (orders-0), or a log dir of Kafka: then every topic in it, except those
    that brokers keep for themselves. Stop the Kafka broker first. Its files are not changed.
    """
    from headrace.broker.storage.adoption import Source, adopt, find_sources

    def progress(source: Source) -> None:
        click.echo(f"copying {source.partition} ({source.bytes} bytes)", err=True)

    result = adopt(
        find_sources(paths), data_directory, broker_id=broker_id, configs=settings, progress=progress
    )
    if as_json:
        print_json([{**item._asdict(), "partition": str(item.partition)} for item in result])
        return
    print_table(
        ("PARTITION", "EARLIEST", "LATEST", "BYTES", "LEFT-OUT"),
        [(i.partition, i.log_start_offset, i.end_offset, i.bytes, i.left_out_bytes) for i in result],
    )
    for item in result:
        if item.left_out_bytes:
            click.echo(
                f"warning: the last {item.left_out_bytes} bytes of {item.partition} are not whole batches "
                "and were left out; `headrace log dump` of the source shows why",
                err=True,
            )
