"""Groups: what it costs to note how far they have come."""

from __future__ import annotations

from bench.case import Case, Sample, Side
from bench.commit_load import CommittingGroups
from bench.load_generator import LoadFailed
from bench.process_cost import Meter
from bench.quantity import cpu_ratio, throughput_ratio


class OffsetCommits(Case):
    """10,000 commits of one partition each, every one answered before its group commits again."""

    group = "commits"
    quantities = (
        cpu_ratio("cpu_us_per_commit", "µs/commit", 0.4),
        throughput_ratio("commits_per_s", "commits/s"),
    )
    COMMITS = 10_000

    def __init__(self, groups: int) -> None:
        self.name = f"commits-{groups}"
        self.title = f"offset commits, {groups} group{'s' if groups > 1 else ''} at once"
        self._groups = groups

    def run(self, side: Side) -> Sample:
        topic = side.fresh_name(self.name)
        side.topics.create(topic)
        rounds = side.scale.count(self.COMMITS) // self._groups
        names = [f"{topic}-{number}" for number in range(self._groups)]
        groups = CommittingGroups(side.broker.port, topic, names)
        try:
            groups.find_coordinators()
            with Meter(side.broker.pid) as meter:
                seconds = groups.commit(rounds)
            if groups.committed() != [rounds] * self._groups:
                raise LoadFailed(f"{side.name} does not hold the last commit of every group")
        finally:
            groups.close()
        side.remove_topic(topic)
        commits = rounds * self._groups
        return {
            "cpu_us_per_commit": meter.cpu_s / commits * 1e6,
            "commits_per_s": commits / seconds,
            "broker_cpu_s": meter.cpu_s,
            "noise_cores": meter.noise_cores,
        }


CASES: list[Case] = [OffsetCommits(1), OffsetCommits(10)]
