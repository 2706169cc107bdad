"""`headrace lake init`: a configuration to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.config_file import write_template

_TEMPLATE = """\
# Topics into tables: headrace lake run --config {name}

[kafka]                                # any setting of Kafka's clients
"bootstrap.servers" = "127.0.0.1:9092"

[lake]
format = "delta"                       # delta, iceberg or parquet
location = "lake"                      # a directory or URL; each table is a directory in it
# namespace = "lake"                   # of Iceberg's tables; catalog = "iceberg" is the default
# state = "lake-state"                 # checkpoints; below the location unless it is set
# trigger = "10s"                      # how often a batch begins
# start = "earliest"                   # or latest, where nothing is loaded yet
# max_records_per_batch = 10000000
# on_data_loss = "stop"                # or continue, where retention was faster than the lake

[[topics]]
pattern = ".*"                         # or name = "orders"; names come before patterns
# table = "{{topic}}"                    # the table's name
# format = "json"                      # json, avro or protobuf give typed columns; bytes keeps the value
# schema = "id bigint, total double"   # or schema_file, or registry = "http://127.0.0.1:8081"
# subject = "{{topic}}-value"            # of the registry: which schema the columns follow
# other_subjects = ["shop.Order"]      # further ones that have schemas of the topic's records

[maintenance]                          # without this section nothing is compacted or expired
every = "1h"
small_file = "32MB"                    # smaller ones are put together ...
target_file = "128MB"                  # ... up to this size
keep = "7d"                            # how long old versions can be read

[spark]                                # settings of the session; master and jars without "spark."
# master = "local[*]"
# "spark.driver.memory" = "4g"
"""


@click.command()
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), default=Path("lake.toml"))
def init(path: Path) -> None:
    """Write a configuration with every setting explained. An existing file is left alone."""
    write_template(path, _TEMPLATE, "headrace lake run")
