"""The end of the day: what arrived where, in a table for people and in a file for programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from clickstream.proof import Proof

_TRY = """\
[bold]Try[/bold] there, with [bold]from headrace.spark import session; spark = session()[/bold]
  spark.sql("SELECT page, count(*) FROM delta.`lake/page-views` GROUP BY page ORDER BY 2 DESC").show()
  spark.sql("SELECT status, count(*), sum(total) FROM delta.`tables/latest-orders` GROUP BY status").show()
  spark.sql("SELECT partition, offset, reason FROM delta.`lake/page-views_dead_letters`").show()
and, after [bold]headrace up --dir broker/data[/bold] in another terminal (--brokers as in the run)
  headrace consume page-traffic --exit
  headrace audit report
"""


def tell(console: Console, proof: Proof, directory: Path) -> None:
    (directory / "summary.json").write_text(json.dumps({**asdict(proof), "holds": proof.holds}, indent=2))
    rows = Table(box=None, padding=(0, 3, 0, 0))
    for name in ("topic", "sent", "in the lake", "dead letters", "certified", "windows", ""):
        rows.add_column(name, justify="left" if name in ("topic", "") else "right")
    for station in proof.stations:
        counts = (station.sent, station.in_lake, station.dead_letters, station.certified, station.windows)
        rows.add_row(station.topic, *(f"{count:,}" for count in counts), _mark(station.agrees))
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
    console.print(_TRY, soft_wrap=True)


def _mark(good: bool) -> str:
    return "[green]✓[/green]" if good else "[red]✗ they differ[/red]"
