"""`headrace cluster roll`: restart one broker after the other, and stop at the first doubt."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import click

from headrace.cli.lazy_group import INTERRUPTED
from headrace.cli.options import bootstrap_option, json_option, security, with_cluster
from headrace.cli.render import print_json
from headrace.cli.values import counted
from headrace.client import health, rolling
from headrace.client.broker_health import BrokerHealth
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.health import BrokerView, Health, Observation
from headrace.client.moments import utc
from headrace.client.start import parse_time_ms

EXIT_DOUBT = 3
LOOK_PAUSE_SECONDS = 0.25
_PLACES = ("{host}", "{broker}", "{port}", "{rack}")
_NAMING = ("{host}", "{broker}", "{port}")
"""One of these makes the command another one for each broker."""


class Doubt(Exception):
    """Nobody goes on from here but a person."""


class _Look(NamedTuple):
    observation: Observation
    seen: Health


@dataclass
class _Rolled:
    """How far it is. What has begun and not ended is also left."""

    restarted: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    under_way: int | None = None


@click.command()
@click.option(
    "--exec",
    "command",
    metavar="COMMAND",
    help="Restarts a broker: {host}, {port}, {broker} and {rack} are those of the broker.",
)
@click.option("--check", is_flag=True, help="Say only whether it would be safe now.")
@click.option(
    "--broker", "chosen", type=click.IntRange(0), multiple=True, help="Only this one; may be repeated."
)
@click.option(
    "--since",
    metavar="TIME",
    help="Skip brokers that have started since: milliseconds or an ISO date, as a roll that stopped says it.",
)
@click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(0),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the command may take, and then a broker until all is in sync again.",
)
@click.option(
    "--allow-pauses",
    is_flag=True,
    help="Restart also a broker without which some partitions cannot be written.",
)
@bootstrap_option
@json_option
def roll(
    command: str | None,
    check: bool,
    chosen: tuple[int, ...],
    since: str | None,
    wait_seconds: float,
    allow_pauses: bool,
    bootstrap: str,
    as_json: bool,
) -> int:
    """Restart one broker after the other, the controller last, while clients go on.

    headrace cluster roll --exec "ssh {host} systemctl restart headrace"

    Before each broker everything must be in sync and ZooKeeper must answer. A broker hands its leaderships
    over before it stops. It has to come back as a new process, and everything has to be in sync in its own
    eyes, before the next one is touched. The roll stops at the first doubt.

    The exit code is 0 if all were restarted, 3 if it stopped, or would with --check, and 130 after Ctrl-C.
    """
    if not check and not command:
        raise click.UsageError("give --exec COMMAND, or --check")
    since_ms = None if since is None else parse_time_ms(since)
    began_ms = time.time_ns() // 1_000_000
    rolled = _Rolled()
    doubt = ""
    try:
        look = with_cluster(bootstrap, _look)
        _choose(look, chosen, since_ms, rolled)
        if command and len(rolled.left) > 1 and not any(place in command for place in _NAMING):
            raise click.UsageError(
                "--exec names no {host} or {broker}: it would be the same for every broker"
            )
        if check:
            _require_safe_for_all(look, rolled.left, allow_pauses)
        else:
            _Roll(command or "", wait_seconds, allow_pauses).run(rolled, look)
    except Doubt as error:
        doubt = str(error)
    except KeyboardInterrupt:
        _say(f"interrupted; {_where_it_stands(rolled, began_ms)}")
        raise click.exceptions.Exit(INTERRUPTED) from None
    _conclude(rolled, doubt, began_ms, check=check, as_json=as_json)
    return EXIT_DOUBT if doubt else 0


def _choose(look: _Look, chosen: Sequence[int], since_ms: int | None, rolled: _Rolled) -> None:
    known = [broker.broker_id for broker in look.seen.view.brokers]
    for number in chosen:
        if number not in known:
            raise ClientFailure(f"there is no broker {number}", "`headrace cluster status` shows them")
    for number in dict.fromkeys(chosen or known):
        started = rolling.started_ms(look.seen.brokers.get(number))
        is_done = since_ms is not None and started is not None and started >= since_ms
        (rolled.skipped if is_done else rolled.left).append(number)


def _require_safe_for_all(look: _Look, brokers: Sequence[int], allow_pauses: bool) -> None:
    for number in brokers:
        _require_safe(look, number, allow_pauses)


def _require_safe(look: _Look, number: int, allow_pauses: bool) -> None:
    reason = rolling.doubt(look.seen)
    if reason:
        raise Doubt(reason)
    if not rolling.tells_its_age(look.seen.brokers[number]):
        raise Doubt(
            f"broker {number} does not tell since when it runs, so nobody could see that it has come back;"
            " this user may lack DESCRIBE_CONFIGS on the cluster"
        )
    pauses = "" if allow_pauses else rolling.pause_doubt(rolling.pausing(look.observation, number), number)
    if pauses:
        raise Doubt(f"{pauses}; --allow-pauses accepts that, `headrace doctor topics` says how to avoid it")


class _Roll:
    def __init__(self, command: str, wait_seconds: float, allow_pauses: bool) -> None:
        self._command = command
        self._wait_seconds = wait_seconds
        self._allow_pauses = allow_pauses

    def run(self, rolled: _Rolled, look: _Look) -> None:
        total = len(rolled.left)
        while rolled.left:
            number = rolling.next_broker(rolled.left, look.seen.view.controller)
            _require_safe(look, number, self._allow_pauses)
            broker = next(each for each in look.seen.view.brokers if each.broker_id == number)
            _say(f"broker {number} at {broker.address} ({len(rolled.restarted) + 1} of {total}): restarting")
            began = time.monotonic()
            rolled.under_way = number
            self._execute(broker)
            look = self._until_in_sync(broker, look.seen.brokers[number], began)
            rolled.under_way = None
            rolled.left.remove(number)
            rolled.restarted.append(number)

    def _execute(self, broker: BrokerView) -> None:
        command = filled_in(self._command, broker)
        try:
            # Standard output is for what the roll itself has to say.
            done = subprocess.run(
                ["/bin/sh", "-c", f"exec 1>&2\n{command}"],
                stdin=subprocess.DEVNULL,
                timeout=self._wait_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Doubt(
                f"the command for broker {broker.broker_id} has not ended within {self._wait_seconds:g} s:"
                f" {command}"
            ) from None
        if done.returncode:
            raise Doubt(f"the command for broker {broker.broker_id} failed with {done.returncode}: {command}")

    def _until_in_sync(self, broker: BrokerView, before: BrokerHealth, began: float) -> _Look:
        """Looks through the broker itself: what it says of the cluster is from after its start."""
        deadline = time.monotonic() + self._wait_seconds
        is_back, reason = False, ""
        while True:
            try:
                look = with_cluster(broker.address, _look, live=True, how=security())
            except ClientFailure as error:
                reason = str(error)
            else:
                seconds = time.monotonic() - began
                after = look.seen.brokers.get(broker.broker_id, BrokerHealth(False))
                if not rolling.is_restarted(before, after, seconds):
                    reason = "the process is the same as before, so the command has not restarted it"
                else:
                    if not is_back:
                        _say(f"broker {broker.broker_id}: back after {seconds:.1f} s; waits to be in sync")
                    is_back, reason = True, rolling.doubt(look.seen)
                    if not reason:
                        _say(f"broker {broker.broker_id}: all is in sync after {seconds:.1f} s")
                        return look
            if time.monotonic() > deadline:
                what = "is back, and not all is well" if is_back else "has not come back"
                raise Doubt(f"broker {broker.broker_id} {what} after {self._wait_seconds:g} s: {reason}")
            time.sleep(LOOK_PAUSE_SECONDS)


def filled_in(command: str, broker: BrokerView) -> str:
    """With the words of this broker. Braces of the shell stay as they are."""
    words = (broker.host, str(broker.broker_id), str(broker.port), broker.rack or "")
    for place, value in zip(_PLACES, words, strict=True):
        command = command.replace(place, shlex.quote(value) if value else "''")
    return command


async def _look(cluster: Cluster) -> _Look:
    observation = await health.gather(cluster)
    return _Look(observation, health.judge(observation))


def _where_it_stands(rolled: _Rolled, began_ms: int) -> str:
    done = ", ".join(map(str, rolled.restarted)) or "none"
    left = ", ".join(map(str, rolled.left)) or "none"
    again = f"; with --since {utc(began_ms)} the next roll goes on from here" if rolled.restarted else ""
    begun = "" if rolled.under_way is None else f" (broker {rolled.under_way} has begun to restart)"
    return f"restarted: {done}; left: {left}{begun}{again}"


def _conclude(rolled: _Rolled, doubt: str, began_ms: int, *, check: bool, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "restarted": rolled.restarted,
                "skipped": rolled.skipped,
                "left": rolled.left,
                "stopped": doubt or None,
                "since": utc(began_ms),
            }
        )
        return
    if doubt:
        click.secho(f"{'not safe' if check else 'stopped'}: {doubt}", fg="red", bold=True)
        if not check:
            click.echo(_where_it_stands(rolled, began_ms))
        return
    skipped = f"; {counted(len(rolled.skipped), 'broker')} skipped" if rolled.skipped else ""
    if check:
        click.echo(f"safe now: {counted(len(rolled.left), 'broker')} to restart, one by one{skipped}")
    else:
        click.echo(f"restarted {counted(len(rolled.restarted), 'broker')}{skipped}")


def _say(text: str) -> None:
    click.echo(text, err=True)
