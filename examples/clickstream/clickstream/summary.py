"""The end of the day: what arrived where, in a table for people and in a file for programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from clickstream.proof import Proof

_TRY = """\
[bold]Try[/bold]
  spark.sql("SELECT page, count(*) FROM delta.`{lake}/page-views` GROUP BY page ORDER BY 2 DESC")
  spark.sql("SELECT status, count(*), sum(total) FROM delta.`{table}/latest-orders` GROUP BY status")
  spark.sql("SELECT reason, string(value) FROM delta.`{lake}/page-views_dead_letters`")
  headrace up --dir {broker}        the brokers again, with all topics; then, in another terminal:
  headrace consume page-traffic     the running totals
  headrace audit report             the audit, in the terminal
"""


def tell(console: Console, proof: Proof, directory: Path) -> None:
    (directory / "summary.json").write_text(json.dumps({**asdict(proof), "holds": proof.holds}, indent=2))
    rows = Table(box=None, padding=(0, 3, 0, 0))
    for name in ("topic", "sent", "in the lake", "dead letters", "certified", "windows", ""):
        rows.add_column(name, justify="left" if name in ("topic", "") else "right")
    for station in proof.stations:
        rows.add_row(
            station.topic,
            *(
                f"{count:,}"
                for count in (
                    station.sent,
                    station.in_lake,
                    station.dead_letters,
                    station.certified,
                    station.windows,
                )
            ),
            _mark(station.agrees),
        )
    console.print(rows)
    same = proof.orders == proof.in_table and not proof.table_differs
    console.print(
        f"latest orders: {proof.in_table:,} in the table, {proof.orders:,} in the shop's books {_mark(same)}"
    )
    same = proof.traffic == proof.traffic_in_lake
    console.print(
        f"page traffic: {proof.traffic:,} views in {proof.traffic_windows} windows, "
        f"{proof.traffic_in_lake:,} in the lake {_mark(same)}\n"
    )
    console.print(f"[bold]Files[/bold] in {directory}")
    console.print("  charts/*.svg, charts/audit.html, lake/, tables/, audit/, *.toml, summary.json\n")
    console.print(
        _TRY.format(
            lake=directory / "lake",
            table=directory / "tables",
            broker=directory / "broker" / "data",
        ),
        soft_wrap=True,
    )


def _mark(good: bool) -> str:
    return "[green]✓[/green]" if good else "[red]✗ they differ[/red]"
