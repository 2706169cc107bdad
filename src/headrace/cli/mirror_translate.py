"""`headrace mirror translate`: an offset of the source, as one of the target."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.mirror_options import asked, config_option, load_config
from headrace.cli.options import json_option
from headrace.cli.render import print_json, print_table


@click.command()
@click.argument("topic")
@click.argument("partition", type=click.IntRange(min=0))
@click.argument("offsets", type=click.IntRange(min=0), nargs=-1, required=True)
@config_option
@json_option
def translate(topic: str, partition: int, offsets: tuple[int, ...], config_path: Path, as_json: bool) -> None:
    """Say where to read on the target what stands at OFFSETS of a partition of the source.

    That is where the first mirrored record is that has this offset or a later one. It is exact, whatever
    compaction, transactions and other writers have left out on either side. Exit code 1 if one of the offsets
    is not mirrored yet.
    """
    config = load_config(config_path)
    from headrace.spark.mirror.reading import Reading

    reading = asked(config_path, Reading.of(config))
    if topic not in reading.position.topics:
        known = ", ".join(sorted(reading.position.topics)) or "none yet"
        raise click.ClickException(f"topic {topic} is not mirrored by {config.name}; mirrored are: {known}")
    mirrored = reading.position.at(topic, partition)
    if mirrored is None:
        count = len(reading.position.topics[topic].offsets)
        raise click.ClickException(f"topic {topic} has {count} partitions that are mirrored, from 0 on")
    target = reading.position.topics[topic].target
    found = [(offset, reading.translate(topic, partition, offset)) for offset in offsets]
    if as_json:
        print_json(
            {
                "topic": topic,
                "partition": partition,
                "target": target,
                "mirrored_to": mirrored,
                "offsets": [{"source": offset, "target": at} for offset, at in found],
            }
        )
    else:
        rows = [(topic, partition, offset, target, at) for offset, at in found]
        print_table(("TOPIC", "PARTITION", "OFFSET", "TARGET", "OFFSET-THERE"), rows, empty="")
    late = [str(offset) for offset, at in found if at is None]
    if late:
        raise click.ClickException(
            f"offset {', '.join(late)} of {topic}, partition {partition}, is not mirrored yet: it is at "
            f"{mirrored} now"
        )
