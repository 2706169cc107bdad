"""What is wrong with a cluster and what to do about it: one finding for each kind, worst first.

Add a kind by adding a function to `KINDS`. Each looks at a judged cluster and says nothing if all is well.
What a broker can say in words needs none: a figure `problem.<name>` of its health report is told as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from headrace.client.health import Health
from headrace.client.log_dirs import LogDirectory
from headrace.client.moments import utc
from headrace.config.health import DAMAGE, PROBLEM, QUARANTINED
from headrace.core.ids import TopicPartition

LITTLE_FREE: Final = 0.1
"""Of a directory's file system."""
FULL_SOON_DAYS: Final = 7.0


class Finding(NamedTuple):
    what: str
    where: Sequence[str]
    """The partitions or brokers that it is about, users' topics first."""
    do: str
    """The next step; empty where there is nothing to do."""
    counted: bool = True
    """Whether `what` wants the number of them before it."""

    @property
    def headline(self) -> str:
        return f"{len(self.where)} {self.what}" if self.counted else self.what


def findings(seen: Health) -> list[Finding]:
    return [found for kind in KINDS.values() if (found := kind(seen)) is not None]


def names(seen: Health, partitions: Iterable[TopicPartition]) -> list[str]:
    """Users' topics before internal ones."""
    in_order = sorted(partitions, key=lambda partition: (partition.topic in seen.internal, partition))
    return [str(partition) for partition in in_order]


def _of_brokers(numbers: Iterable[int]) -> list[str]:
    return [f"broker {number}" for number in numbers]


def _frozen(seen: Health) -> Finding | None:
    if not seen.is_frozen:
        return None
    figures = next(each.figures for each in seen.brokers.values() if each.answers)
    servers = figures.get("zookeeper.servers", "")
    return Finding(
        "no broker reaches ZooKeeper; no elections, no topic changes; do not restart brokers",
        [servers] if servers else [],
        "start its servers, or mend the way to them; everything goes on by itself when it answers",
        counted=False,
    )


def _cut_off(seen: Health) -> Finding | None:
    if seen.is_frozen or not seen.without_zookeeper:
        return None
    return Finding(
        "without ZooKeeper, while others reach it",
        _of_brokers(seen.without_zookeeper),
        "mend its way to ZooKeeper before anything is restarted; it is fenced when its session expires",
    )


def _offline(seen: Health) -> Finding | None:
    where = "without a leader: neither read nor written"
    return _partitions(seen, where, seen.offline, _bring_back(seen))


def _bring_back(seen: Health) -> str:
    """What to do about partitions without a leader, the step that loses nothing first."""
    quarantined = {partition: seen.quarantined.get(str(partition), {}) for partition in seen.offline}
    openable = sorted({number for each in quarantined.values() for number, may in each.items() if may})
    is_one_down = any(number in seen.dead for each in seen.holders.values() for number in each)
    steps = []
    if is_one_down:
        steps.append("start the brokers that hold its replicas; `headrace topic describe NAME` names them")
    if openable:
        steps.append(
            f"restart {_listed(openable)}, one after the other: replicas of it were quarantined there, and a"
            " start may open them again"
        )
    if not steps:
        steps.append(
            "look for `partition quarantined` in the logs of the brokers that hold its replicas, and bring"
            " the files back"
        )
    if openable:
        steps.append(f"then {_UNCLEAN}")
    elif not is_one_down:
        is_one_left = any(set(seen.holders[each]) - set(quarantined[each]) for each in seen.offline)
        steps.append(f"if they are lost, {_UNCLEAN}" if is_one_left else "no other replica is left to lead")
    return "; ".join(steps)


_UNCLEAN: Final = (
    "`headrace topic elect-leaders NAME --unclean` shows what each replica has, and lets the log with the"
    " last epoch lead, of several the longest"
)


def _listed(numbers: Sequence[int]) -> str:
    return " and ".join(_of_brokers(numbers))


def _under_min_isr(seen: Health) -> Finding | None:
    return _partitions(
        seen,
        "below min.insync.replicas: acks=all is refused",
        seen.under_min_isr,
        "start the brokers that are down" if seen.dead else _catching_up(seen, seen.under_min_isr),
    )


def _catching_up(seen: Health, partitions: Iterable[TopicPartition]) -> str:
    """Of replicas on brokers that are alive."""
    wait = "wait: its replicas catch up, and max lag falls from look to look"
    if any(str(partition) in seen.damaged_partitions for partition in partitions):
        return (
            f"{wait}; one that lacks the damaged records stops before them until those are mended or given up"
        )
    if any(str(partition) in seen.quarantined for partition in partitions):
        return (
            f"{wait}; one that is quarantined is fetched anew as soon as its leader has said that it has all"
        )
    return wait


def _unreadable(seen: Health) -> Finding | None:
    if not seen.unreadable:
        return None
    others = "start the brokers that are down, one that has them whole gives them to the others; else "
    if not seen.dead:
        others = ""
    return Finding(
        "records are damaged, no other replica in sync gives them, and readers are refused",
        [f"broker {number}: {ranges}" for number, ranges in seen.unreadable.items()],
        f"{others}stop that broker and run `headrace log verify DIRECTORY`, which names the files; restore"
        " them from a backup, or give the records up: `headrace topic trim NAME --partition N --to OFFSET`",
        counted=False,
    )


def _silent(seen: Health) -> Finding | None:
    silent = [broker for broker in seen.view.brokers if not broker.alive and broker.registered]
    return _brokers(
        "registered, but not answering",
        [f"broker {broker.broker_id} at {broker.address}" for broker in silent],
        "look at its process and its log; it is fenced as soon as the controller can do that",
    )


def _dead(seen: Health) -> Finding | None:
    dead = [broker.broker_id for broker in seen.view.brokers if not broker.alive and not broker.registered]
    return _brokers(
        "not alive",
        [_gone(seen, each) for each in dead],
        "start it, or see its log for why it ended; it catches up by itself",
    )


def _gone(seen: Health, broker_id: int) -> str:
    """With when and why the controller fenced it, where one that answers still knows."""
    known = [told for each in seen.brokers.values() if (told := each.fenced.get(broker_id))]
    if not known:
        return f"broker {broker_id}"
    last = max(known)
    return f"broker {broker_id} (fenced at {utc(last.wall_ms)}: {last.reason})"


def _under_replicated(seen: Health) -> Finding | None:
    return _partitions(
        seen,
        "under-replicated",
        [each for each in seen.under_replicated if each not in seen.offline],
        "" if seen.dead else _catching_up(seen, seen.under_replicated),
    )


def _at_min_isr(seen: Health) -> Finding | None:
    return _partitions(
        seen, "one replica away from refusing acks=all", seen.at_min_isr, "restart no broker now"
    )


def _offline_directories(seen: Health) -> Finding | None:
    return _brokers(
        "log directories offline",
        [
            f"broker {number} {directory.path}"
            for number, directories in seen.directories.items()
            for directory in directories
            if directory.failed
        ],
        "its log says why; replace the disk, or mend it, and restart that broker",
    )


def _nearly_full(seen: Health) -> Finding | None:
    full = []
    for number, directories in seen.directories.items():
        for directory in directories:
            days = seen.days_left(number, directory)
            soon = days is not None and days < FULL_SOON_DAYS
            if directory.total_bytes > 0 and (_share_free(directory) < LITTLE_FREE or soon):
                within = f", full in {days:.1f} days" if days is not None else ""
                free = directory.usable_bytes / 1e9
                full.append(
                    f"broker {number} {directory.path} ({_share_free(directory):.0%} or {free:,.1f} GB"
                    f" free{within})"
                )
    return _brokers(
        "log directories nearly full", full, "lower retention, move replicas away, or give it a larger disk"
    )


def _share_free(directory: LogDirectory) -> float:
    return directory.usable_bytes / directory.total_bytes


def _problems(seen: Health) -> Finding | None:
    """What brokers themselves say in words."""
    said = [
        f"broker {number}: {text}"
        for number, each in seen.brokers.items()
        for name, text in each.figures.items()
        if name.startswith(PROBLEM) and name != DAMAGE
    ]
    return _brokers("told by brokers", said, "")


def _damaged(seen: Health) -> Finding | None:
    """Of brokers with nothing that is refused or quarantined: of that another line speaks."""
    found = [
        f"broker {number} ({each.scrub.damage_found} places)"
        for number, each in seen.brokers.items()
        if each.scrub is not None
        and each.scrub.damage_found
        and not {DAMAGE, QUARANTINED} & set(each.figures)
    ]
    return _brokers(
        "with damaged files found since the start",
        found,
        "nothing of it is refused now: it is mended from other replicas, or about to be; look at those disks"
        " (smartctl, dmesg) before it becomes more",
    )


def _thin(seen: Health) -> Finding | None:
    if not seen.thin:
        return None
    topic, factor = next(iter(seen.thin.items()))
    brokers = ",".join(str(broker.broker_id) for broker in seen.view.brokers if broker.registered)
    return Finding(
        "with fewer replicas than configured",
        [f"{name} (should have {wanted})" for name, wanted in seen.thin.items()],
        f"headrace topic reassign {topic} --brokers {brokers} --replication-factor {factor}",
    )


def _moving(seen: Health) -> Finding | None:
    order = {name: at for at, name in enumerate(names(seen, seen.moving))}
    moves = sorted(seen.moving.items(), key=lambda item: order[str(item[0])])
    return _brokers(
        "being moved",
        [
            f"{partition} to {','.join(str(added) for added in entry.adding) or 'fewer'}"
            for partition, entry in moves
        ],
        "",
    )


def _not_preferred(seen: Health) -> Finding | None:
    return _partitions(seen, "not led by the preferred replica", seen.not_preferred, "")


def _partitions(seen: Health, what: str, partitions: Sequence[TopicPartition], do: str) -> Finding | None:
    return Finding(what, names(seen, partitions), do) if partitions else None


def _brokers(what: str, where: Sequence[str], do: str) -> Finding | None:
    return Finding(what, where, do) if where else None


Kind = Callable[[Health], Finding | None]

KINDS: Final[Mapping[str, Kind]] = {
    "zookeeper-silent": _frozen,
    "partitions-offline": _offline,
    "partitions-under-min-isr": _under_min_isr,
    "records-unreadable": _unreadable,
    "zookeeper-cut-off": _cut_off,
    "brokers-silent": _silent,
    "brokers-down": _dead,
    "log-directories-offline": _offline_directories,
    "partitions-under-replicated": _under_replicated,
    "partitions-at-min-isr": _at_min_isr,
    "log-directories-full": _nearly_full,
    "told-by-brokers": _problems,
    "files-damaged": _damaged,
    "internal-topics-thin": _thin,
    "moving": _moving,
    "not-preferred": _not_preferred,
}
"""By name, worst first: `headrace doctor` has most of them as checks."""
