"""`headrace audit run`: the job that counts, compares and certifies."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from headrace.audit import event
from headrace.audit.verdict import State, Verdict, window_text
from headrace.cli import config_file
from headrace.cli.audit_options import FAILED, certificates_option, document, moment_ms
from headrace.cli.completions import complete_topics
from headrace.cli.lazy_group import report
from headrace.cli.options import bootstrap_of, bootstrap_option, client_properties, json_option
from headrace.cli.progress import ProgressLine
from headrace.cli.render import print_json_line
from headrace.cli.values import duration_ms, duration_text
from headrace.client.errors import ClientFailure
from headrace.core.errors import HeadraceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.spark.audit.config import AuditConfig  # Spark is imported when the command runs
    from headrace.spark.audit.job import Auditor, PassResult
    from headrace.spark.lake.config import LakeConfig
    from headrace.spark.mirror.config import MirrorConfig

_NAME: Final = "headrace audit"
#: So many passes in a row that fail are no accident.
_FAILURES_AT_MOST: Final = 5


@click.command()
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True, shell_complete=complete_topics)
@click.option(
    "--state",
    required=True,
    metavar="DIRECTORY",
    help="Where the audit keeps its tables: a directory of this machine, or a URL.",
)
@click.option(
    "--lake",
    "lakes",
    multiple=True,
    metavar="[TIER=]FORMAT:LOCATION",
    help="A table to compare with, as delta:/data/lake/orders; may be repeated. Name the dead letters too.",
)
@click.option(
    "--lake-config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The lake.toml of a `headrace lake`: its tables of these topics, with their dead letters. "
    "Its brokers and its settings of Spark too, where no option says otherwise.",
)
@click.option(
    "--mirror-config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The mirror.toml of a `headrace mirror`: what its target holds of these topics is a tier too.",
)
@click.option("--window", metavar="DURATION", default="1m", show_default=True, callback=duration_ms)
@click.option(
    "--lateness",
    metavar="DURATION",
    default="1m",
    show_default=True,
    callback=duration_ms,
    help="How long after a window's end its records may come.",
)
@click.option(
    "--since",
    metavar="MOMENT",
    callback=moment_ms,
    help="Leave out windows before this; or `now`. For topics that these tables do not have yet.",
)
@click.option("--without-producers", is_flag=True, help="Compare only log and lake.")
@click.option("--once", is_flag=True, help="One pass; exit 1 if it finds a difference, 3 if it fails.")
@click.option("--every", metavar="DURATION", default="30s", show_default=True, callback=duration_ms)
@click.option("--events", default=event.DEFAULT_TOPIC, show_default=True, metavar="TOPIC")
@certificates_option
@click.option(
    "--master", default=None, metavar="URL", help="Spark's master. Default: lake.toml's, or local[*]."
)
@bootstrap_option
@json_option
def run(
    topics: tuple[str, ...], once: bool, every: int, master: str | None, as_json: bool, **chosen: Any
) -> None:
    """Count and compare the tiers of TOPICs, window by window, and publish a verdict on each.

    \b
    headrace audit run orders --state /data/audit --lake-config lake.toml
    headrace audit run orders --state /data/audit --lake delta:/data/lake/orders

    Producers must be audited (`headrace.audit`), or left out with --without-producers. A difference is
    printed as soon as it is sure. `headrace audit report` draws what was found, and `headrace audit wait`
    waits for a window.
    """
    with _failures_apart() if once else nullcontext():
        session, auditor_for = config_file.imported(_spark_parts, "the audit needs")
        lake = _lake(chosen["lake_config"])
        config = _config(topics, chosen, lake)
        spark = session(lake, master)
        try:
            auditor = auditor_for(spark, config)
            if once:
                click.echo(f"counting {', '.join(topics)}", err=True)
                found = auditor.run_once()
                _print(found, as_json)
                different = any(each.state is State.DIFFERENT for each in found.verdicts)
                raise click.exceptions.Exit(1 if different else 0)
            _run_on(auditor, every / 1000, as_json)
        finally:
            spark.stop()


@contextmanager
def _failures_apart() -> Iterator[None]:
    """Where the exit code is the answer, a failure must not look like a difference."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit):
        raise
    except Exception as error:
        if not isinstance(error, HeadraceError):
            traceback.print_exception(error)
        report(str(error), getattr(error, "hint", ""))
        raise click.exceptions.Exit(FAILED) from error


def _spark_parts() -> tuple[Callable[[LakeConfig | None, str | None], SparkSession], type[Auditor]]:
    from headrace.spark import session
    from headrace.spark.audit.job import Auditor
    from headrace.spark.lake.sessions import session_for

    def made(lake: LakeConfig | None, master: str | None) -> SparkSession:
        if lake is not None:
            return session_for(lake, master=master, name=_NAME)
        spark = session(_NAME, master=master, extra={"spark.ui.showConsoleProgress": "false"})
        spark.sparkContext.setLogLevel("ERROR")
        return spark

    return made, Auditor


def _lake(path: Path | None) -> LakeConfig | None:
    from headrace.spark.lake.config import load

    return None if path is None else load(path)


def _mirror(path: Path | None) -> MirrorConfig | None:
    from headrace.spark.mirror.config import load

    return None if path is None else load(path)


def _config(topics: tuple[str, ...], chosen: dict[str, Any], lake: LakeConfig | None) -> AuditConfig:
    from headrace.spark.audit.config import AuditConfig, parse_table
    from headrace.spark.audit.lakes import tables_of
    from headrace.spark.lake.config import location_of

    lakes = tuple(parse_table(text) for text in chosen["lakes"])
    if lake is not None:
        lakes += tables_of(lake, topics)
    state = location_of(chosen["state"], Path.cwd())
    assert state is not None  # the option is required
    return AuditConfig(
        kafka=_kafka(chosen["bootstrap"], lake),
        topics=topics,
        state=state,
        lakes=lakes,
        mirror=_mirror(chosen["mirror_config"]),
        window_ms=chosen["window"],
        lateness_ms=chosen["lateness"],
        with_producers=not chosen["without_producers"],
        since_ms=None if chosen["since"] is None else first_whole_window(chosen["since"], chosen["window"]),
        events_topic=chosen["events"],
        verdicts_topic=chosen["certificates"],
    )


def _kafka(bootstrap: str, lake: LakeConfig | None) -> Mapping[str, str]:
    """What lake.toml says comes before the environment, as for the lake itself, and after an option."""
    if lake is None:
        return {**client_properties(), "bootstrap.servers": bootstrap_of(bootstrap)}
    found = dict(lake.kafka)
    if _is_option("command_config"):
        found |= client_properties()
    if _is_option("bootstrap"):
        found["bootstrap.servers"] = bootstrap
    return found


def _is_option(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def first_whole_window(moment: int, window: int) -> int:
    """The first window that lies after the moment as a whole: what came before was not heard."""
    return -(-moment // window) * window


def _run_on(auditor: Auditor, every_seconds: float, as_json: bool) -> None:
    """A pass that fails is made again: a broker may be away, or retention have taken what was being read."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
    from pyspark.errors import PySparkException

    failed = 0
    with ProgressLine() as progress:
        while True:
            began = time.monotonic()
            try:
                found = auditor.run_once()
            except (ClientFailure, PySparkException, Py4JError) as error:
                failed += 1
                if failed >= _FAILURES_AT_MOST:
                    raise
                click.echo(f"a pass failed and is made again: {str(error).splitlines()[0]}", err=True)
            else:
                failed = 0
                _print_news(found, as_json)
                progress.tell(_line(found))
            time.sleep(max(0.0, every_seconds - (time.monotonic() - began)))


def _line(found: PassResult) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in found.counts().items() if count)
    took = duration_text(round(found.seconds * 1000))
    strange = f" and {found.strange:,} records that are none" if found.strange else ""
    read = f"{found.records:,} records, {found.events:,} events{strange} in {took}"
    return f"pass {found.step}: {read}; {counts or 'no window is over yet'}"


def _print_news(found: PassResult, as_json: bool) -> None:
    for each in found.news:
        if as_json:
            print_json_line(document(each))
        elif each.state is State.DIFFERENT:
            click.echo(_sentence(each))
    for (topic, partition), count in found.gone.items():
        click.echo(
            f"{topic}, partition {partition}: {count} offsets were deleted before they were counted", err=True
        )


def _print(found: PassResult, as_json: bool) -> None:
    _print_news(found, as_json)
    if not as_json:
        for each in found.verdicts:
            if each.state is State.INCOMPLETE:
                click.echo(_sentence(each))
    click.echo(_line(found), err=as_json)  # with --json, standard output has documents only


def _sentence(each: Verdict) -> str:
    return f"{each.topic}, window {window_text(each.window_ms)}: {each.headline}"
