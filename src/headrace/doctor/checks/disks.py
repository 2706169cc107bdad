"""How long the disks last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.client.findings import FULL_SOON_DAYS, KINDS
from headrace.client.log_dirs import LogDirectory
from headrace.client.shell_words import word
from headrace.config.health import growth_of
from headrace.doctor.facts import Facts, kept_ms
from headrace.doctor.model import Check, Finding, Level, NotKnown, known

GROUP: Final = "disks"
NEARLY_FULL: Final = 0.25
"""Free, of a directory's file system: what is kept for ever has to be thought of before it is a tenth."""
_DAY_SECONDS: Final = 86_400
_WEEK_MS: Final = 7 * _DAY_SECONDS * 1000
SHOWN: Final = 5


def _days(facts: Facts) -> Iterator[Finding]:
    seen = known(facts.health)
    directories = known(facts.directories)
    found = KINDS["log-directories-full"](seen)
    if found is not None:
        yield Finding(
            Level.SERIOUS,
            found.headline,
            found.where,
            ["headrace cluster rebalance --plan"],
            f"{found.do}; the days are of the growth that each broker has seen in its last day",
        )
    untold = [
        f"broker {number} {directory.path}"
        for number, each in directories.items()
        for directory in each
        if not directory.failed and not _may_last(facts, number, directory)
    ]
    if untold:
        raise NotKnown(f"the growth of {', '.join(untold)}: a broker tells it an hour after its start")


def _may_last(facts: Facts, number: int, directory: LogDirectory) -> bool:
    """Whether its growth is known; else whether it lasts even if all that is in it came since the start."""
    figures = facts.brokers[number].figures if number in facts.brokers else {}
    if growth_of(directory.path) in figures:
        return True
    uptime = figures.get("uptime.seconds", "")
    if directory.usable_bytes < 0 or not uptime.isdecimal():
        return False
    size = sum(files.size for files in directory.replicas.values())
    per_day = size / max(1, int(uptime)) * _DAY_SECONDS
    return directory.usable_bytes > FULL_SOON_DAYS * per_day


def _kept_for_ever(facts: Facts) -> Iterator[Finding]:
    settings = known(facts.topic_settings)
    endless = {
        name
        for name, each in settings.items()
        if kept_ms(each) is None
        and (policy := each.get("cleanup.policy")) is not None
        and policy.value == "delete"
        and (limit := each.get("retention.bytes")) is not None
        and limit.value == "-1"
    }
    for number, directories in known(facts.directories).items():
        for directory in directories:
            if directory.total_bytes <= 0 or directory.usable_bytes >= NEARLY_FULL * directory.total_bytes:
                continue
            sizes: dict[str, int] = {}
            for partition, files in directory.replicas.items():
                if partition.topic in endless:
                    sizes[partition.topic] = sizes.get(partition.topic, 0) + files.size
            largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:SHOWN]
            if largest:
                free = directory.usable_bytes / directory.total_bytes
                yield Finding(
                    Level.WARNING,
                    f"topics without retention on broker {number} {directory.path}, which is {free:.0%} free",
                    [f"{name}: {sizes[name] / 1e6:,.1f} MB" for name in largest],
                    [f"headrace config set --topic {word(name)} retention.ms={_WEEK_MS}" for name in largest],
                    "this removes records that are older than a week: only if nobody needs them",
                )


CHECKS: Final = (
    Check(
        "disks-full-soon",
        GROUP,
        f"a log directory with less than a tenth free, or full within {FULL_SOON_DAYS:.0f} days as it grew in"
        " the last day",
        "a full disk takes the directory offline",
        "lower retention, move replicas away, or a larger disk",
        _days,
    ),
    Check(
        "retention-unlimited",
        GROUP,
        f"topics without retention by time and size on a disk with less than {NEARLY_FULL:.0%} free",
        "nothing is ever removed from them, so the disk fills",
        "`headrace config set --topic TOPIC retention.ms=MS`",
        _kept_for_ever,
    ),
)
