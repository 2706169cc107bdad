"""`headrace lake init`: a configuration to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.config_file import write_template

_TEMPLATE = """\
# Topics into tables: headrace lake run --config {name}

[kafka]                                # any setting of Kafka's clients
"bootstrap.servers" = "127.0.0.1:9092"
# command_config = "client.properties" # more of them in a file that only its owner may read: TLS, passwords

[lake]
format = "delta"                       # delta, iceberg or parquet
location = "lake"                      # a directory or URL; the tables are directories below it
# catalog = "iceberg"                  # Spark's name of the catalog in which Iceberg's tables are
# namespace = "lake"                   # of Iceberg's tables
# state = "lake-state"                 # checkpoints; below the location unless it is set
# trigger = "10s"                      # how often a batch begins
# discover = "30s"                     # how often new topics are looked for
# start = "earliest"                   # or latest, where nothing is loaded yet
# max_records_per_batch = 10000000     # a batch that was not over is read again after a kill
# min_partitions = 8                   # more tasks for a batch than the topic has partitions
# parallel_topics = 4                  # how many topics are loaded at a time with --once
group = "lake"                         # a consumer group that shows how far the tables are: its lag is theirs
# on_data_loss = "stop"                # or continue, where retention was faster than the lake

[[topics]]
pattern = ".*"                         # a regular expression for whole names; none that begin with _
# name = "orders"                      # instead of a pattern; names come before patterns
# table = "{{topic}}"                    # the table's name
# dead_letters = "{{table}}_dead_letters"   # the table of records that cannot be decoded
# format = "json"                      # json, avro or protobuf give typed columns; bytes keeps the value
# schema = "id bigint, total double"   # of json; Avro's schema, or the text of a .proto file
# schema_file = "orders.avsc"          # instead of schema; .pb, .desc and .binpb are compiled Protobuf
# registry = "http://127.0.0.1:8081"   # instead of both: values are in Confluent's wire format
# subject = "{{topic}}-value"            # of the registry: which schema the columns follow
# version = 3                          # of the subject; without it the columns follow the latest
# other_subjects = ["shop.Order"]      # further ones that have schemas of the topic's records
# message = "shop.Order"               # of Protobuf: which one, if the schema has several
# keep_value = true                    # the bytes too, beside the typed columns

[maintenance]                          # without this section nothing is compacted or expired
every = "1h"                           # while `headrace lake run` goes on
small_file = "32MB"                    # smaller ones are put together ...
target_file = "128MB"                  # ... up to this size
# least_files = 8                      # fewer small ones than this are left alone
keep = "7d"                            # how long old versions can be read: longer than any batch takes

[spark]                                # settings of the session; master and jars without "spark."
# master = "local[*]"
# "spark.driver.memory" = "4g"
"""


@click.command()
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), default=Path("lake.toml"))
def init(path: Path) -> None:
    """Write a configuration with every setting explained. An existing file is left alone."""
    write_template(path, _TEMPLATE, "headrace lake run")
