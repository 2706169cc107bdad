"""`headrace table init`: a configuration to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.config_file import write_template

_TEMPLATE = """\
# The latest value of each key as a table: headrace table run --config {name}

[kafka]                                # any setting of Kafka's clients
"bootstrap.servers" = "127.0.0.1:9092"

[store]
format = "delta"                       # or iceberg
location = "tables"                    # a directory or URL; each table is a directory in it
# namespace = "tables"                 # of Iceberg's tables; catalog = "iceberg" is the default
# state = "tables-state"               # checkpoints; below the location unless it is set
# trigger = "10s"                      # how often a batch begins
# max_records_per_batch = 10000000
# on_data_loss = "stop"                # or continue, where retention was faster

[[tables]]
topic = "orders"
# name = "orders"                      # the table's; like the topic's unless it is set
key = "string"                         # or bytes; json, avro, protobuf with key_schema or key_registry
# key_fields = ["id"]                  # instead of key: fields of the value
format = "json"                        # json, avro or protobuf give typed columns; bytes keeps the value
schema = "customer string, total double"
# registry = "http://127.0.0.1:8081"   # instead of a schema; subject = "orders-value" is the default
# other_subjects = ["shop.Order"]      # further ones that have schemas of the topic's records
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
every = "1h"
keep = "7d"                            # how long old versions can be read

[spark]                                # settings of the session; master and jars without "spark."
# master = "local[*]"
# "spark.driver.memory" = "4g"
"""


@click.command()
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), default=Path("table.toml"))
def init(path: Path) -> None:
    """Write a configuration with every setting explained. An existing file is left alone."""
    write_template(path, _TEMPLATE, "headrace table run")
