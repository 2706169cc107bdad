"""`headrace table init`: a configuration to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.config_file import write_template

_TEMPLATE = """\
# The latest value of each key as a table: headrace table run --config {name}

[kafka]                                # any setting of Kafka's clients
"bootstrap.servers" = "127.0.0.1:9092"
# command_config = "client.properties" # more of them in a file that only its owner may read: TLS, passwords

[store]
format = "delta"                       # or iceberg
location = "tables"                    # a directory or URL; the tables are directories below it
# catalog = "iceberg"                  # Spark's name of the catalog in which Iceberg's tables are
# namespace = "tables"                 # of Iceberg's tables
# state = "tables-state"               # checkpoints; below the location unless it is set
# trigger = "10s"                      # how often a batch begins
# discover = "30s"                     # how often a topic that is not there yet is looked for
# max_records_per_batch = 10000000     # a batch that was not over is read again after a kill
# min_partitions = 8                   # more tasks for a batch than the topic has partitions
# parallel_tables = 4                  # how many tables are filled at a time with --once
group = "tables"                       # a consumer group that shows how far the tables are: its lag is theirs
# on_data_loss = "stop"                # or continue, where retention was faster

[[tables]]
topic = "orders"
# name = "orders"                      # the table's; like the topic's unless it is set
# dead_letters = "orders_dead_letters" # the table of records that cannot be decoded
key = "string"                         # or bytes; json, avro, protobuf with one of the next three
# key_schema = "id bigint"
# key_schema_file = "key.avsc"
# key_registry = "http://127.0.0.1:8081"
# key_subject = "orders-key"           # of the registry
# key_message = "shop.OrderKey"        # of Protobuf: which one, if the schema has several
# key_fields = ["id"]                  # instead of key: fields of the value
format = "json"                        # json, avro or protobuf give typed columns; bytes keeps the value
schema = "customer string, total double"
# schema_file = "orders.avsc"          # instead of schema; .pb, .desc and .binpb are compiled Protobuf
# registry = "http://127.0.0.1:8081"   # instead of both: values are in Confluent's wire format
# subject = "orders-value"             # of the registry: which schema the columns follow
# version = 3                          # of the subject; without it the columns follow the latest
# other_subjects = ["shop.Order"]      # further ones that have schemas of the topic's records
# message = "shop.Order"               # of Protobuf: which one, if the schema has several
# keep_value = true                    # the bytes too, beside the typed columns
# deleted = "status = 'cancelled'"     # deletes a key as a tombstone does
# order = "offset"                     # the later of two records has the larger partition, then offset. If
                                       # keys can move between partitions, as when a topic gets more of
                                       # them, write "timestamp": else a key that moves to a smaller number
                                       # is never changed again. To set it later takes a rebuild

[[indexes]]                            # the keys by another column
table = "orders"
columns = ["customer"]
# name = "orders_by_customer"
# include = ["total"]                  # columns that spare a look at the table

[[views]]                              # one row for each value of an index's columns. try_sum is null where a
                                       # sum is too large; with sum the view would stand still
name = "customers"
index = "orders_by_customer"
columns = ["count(*) AS orders", "try_sum(total) AS spent"]

[maintenance]                          # without this section nothing is compacted or expired
every = "1h"                           # while `headrace table run` goes on
small_file = "32MB"                    # smaller ones are put together ...
target_file = "128MB"                  # ... up to this size
# least_files = 8                      # fewer small ones than this are left alone
keep = "7d"                            # how long old versions can be read: longer than any batch takes

[spark]                                # settings of the session; master and jars without "spark."
# master = "local[*]"
# "spark.driver.memory" = "4g"
"""


@click.command()
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), default=Path("table.toml"))
def init(path: Path) -> None:
    """Write a configuration with every setting explained. An existing file is left alone."""
    write_template(path, _TEMPLATE, "headrace table run")
