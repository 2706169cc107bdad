"""A shop's day in a few minutes, from its visitors to certified tables.

python -m clickstream --minutes 3
"""

from __future__ import annotations

import signal
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import click
from rich.console import Console

from clickstream import broker, topics
from clickstream.pipeline import run, spark_session
from clickstream.proof import Proof
from clickstream.shop import Shop
from clickstream.summary import tell
from clickstream.trading import Trading
from headrace.core.errors import HeadraceError
from headrace.spark import jars


@click.command()
@click.option(
    "--minutes", type=click.FloatRange(0.1), default=3.0, show_default=True, help="How long the day lasts."
)
@click.option(
    "--rate",
    type=click.FloatRange(1),
    default=1_000.0,
    show_default=True,
    help="Page views a second at noon.",
)
@click.option("--brokers", type=click.IntRange(1), default=1, show_default=True)
@click.option("--directory", type=click.Path(path_type=Path), help="For the files. Default: a new one, here.")
@click.option("--keep", is_flag=True, help="Keep the brokers running at the end, until Ctrl-C.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed is the same shop.")
def main(minutes: float, rate: float, brokers: int, directory: Path | None, keep: bool, seed: int) -> None:
    """Run a shop's day through the whole pipeline, and check that every record arrived once."""
    # Whoever asks this program to end wants its brokers ended too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    directory = (directory or Path(f"clickstream-{datetime.now():%Y%m%d-%H%M%S}")).absolute()
    try:
        jars.find()
        directory.mkdir(parents=True)
        proof = day(directory, brokers, Shop(seed), minutes * 60, rate, keep)
    except HeadraceError as error:
        raise click.ClickException(str(error)) from error
    raise SystemExit(0 if proof.holds else 1)


def day(directory: Path, brokers: int, shop: Shop, seconds: float, rate: float, keep: bool) -> Proof:
    console = Console(highlight=False)
    with broker.running(directory / "broker", brokers) as bootstrap:
        console.print(f"brokers are up at {bootstrap}")
        topics.create(bootstrap, brokers)
        with spark_session(directory) as spark:
            console.print(f"Spark {spark.version} is up")
            proof = run(console, spark, Trading(shop, bootstrap, seconds, rate), directory)
        tell(console, proof, directory)
        if keep:
            console.print(f"The brokers serve at {bootstrap} until Ctrl-C.")
            with suppress(KeyboardInterrupt):
                signal.pause()
    return proof


if __name__ == "__main__":
    main()
