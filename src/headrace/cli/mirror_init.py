"""`headrace mirror init`: a configuration to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.config_file import write_template

_TEMPLATE = """\
# Topics from one cluster into another: headrace mirror run --config {name}

[source]                               # settings of Kafka's clients: address, security and client.id
"bootstrap.servers" = "127.0.0.1:9092"
# command_config = "source.properties" # more of them in a file that only its owner may read: TLS, passwords

[target]
"bootstrap.servers" = "127.0.0.1:9192"
# command_config = "target.properties"

[mirror]
name = "dr"                            # its position is kept under this name: never change it
# start = "earliest"                   # or latest, for topics that are new to the mirror
# existing = "refuse"                  # or append, where topics of the target have records of their own
# trigger = "1s"                       # how long to wait where nothing is new
# discover = "30s"                     # how often settings are compared
# max_records_per_batch = 1000000      # a batch that was not over is read again after a kill
# tasks = 2                            # of a batch; as many as Spark has cores unless it is set
# compression = "none"                 # gzip, snappy, lz4 or zstd: of what is written to the target
# replication_factor = 3               # of new topics of the target; the source's unless it is set
# settings = true                      # settings of topics go along
group = "mirror-dr"                    # a consumer group at the source that shows how far the mirror is
# decisions = "__headrace_sink"        # where the sink remembers batches, on the target

[[topics]]
pattern = ".*"                         # a regular expression for whole names; none that begin with _
# exclude = ["test-.*"]                # of those that the pattern matches
# name = "orders"                      # instead of a pattern; names come before patterns
# target = "{{topic}}"                   # another name on the target, as in "eu.{{topic}}"

[groups]                               # without this section no offsets of groups are carried
patterns = [".*"]
# exclude = ["console-consumer-.*"]
# every = "5s"

# [acls]                               # rights to read topics go along
# every = "1m"

[spark]                                # settings of the session; master and jars without "spark."
# master = "local[*]"
# "spark.driver.memory" = "2g"
"""


@click.command()
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), default=Path("mirror.toml"))
def init(path: Path) -> None:
    """Write a configuration with every setting explained. An existing file is left alone."""
    write_template(path, _TEMPLATE, "headrace mirror run")
