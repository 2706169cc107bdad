"""The driver of a lake: `headrace lake run`, as a person would start it.

`python -m tests.spark.fire.programs.lake ORDERS`
"""

from __future__ import annotations

import sys
from pathlib import Path

from headrace.cli.main import cli
from tests.spark.fire.orders import Orders


def write_config(orders: Orders) -> Path:
    """lake.toml, the same at every start except for Spark's settings."""
    settings = "".join(f'"{name}" = "{value}"\n' for name, value in orders.settings.items())
    path = orders.path / "lake.toml"
    path.write_text(
        f"""
[kafka]
"bootstrap.servers" = "{orders.bootstrap}"

[lake]
format = "{orders.options["format"]}"
location = "{orders.tables}"
state = "{orders.path / "state"}"
trigger = "100ms"
max_records_per_batch = {orders.batch_records}

[[topics]]
name = "{orders.source}"
table = "{orders.target}"

[spark]
{settings}"""
    )
    return path


def main() -> None:
    orders = Orders.from_json(sys.argv[1])
    arguments = ["lake", "run", "--config", str(write_config(orders)), "--master", orders.master]
    cli.main(args=[*arguments, "--once"] if orders.finish else arguments, prog_name="headrace")


if __name__ == "__main__":
    main()
