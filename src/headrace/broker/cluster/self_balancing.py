"""Self-balancing, a duty of the active controller: asks the brokers what they carry, and begins a few moves.

What it decides is pure (`controller/self_balancing`). Here is only when it looks and whom it asks, and that a
plan, which takes many slices, still holds at the moment in which it is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, TypeVar

from headrace.broker.cluster.balancing_decisions import BalancingDecisions
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.peer_link import PeerLink
from headrace.broker.cluster.peer_requests import ask
from headrace.broker.runtime.runtime import Runtime
from headrace.config.load_report import LOAD
from headrace.controller.image import MetadataImage, ResourceType
from headrace.controller.operations import ElectionType
from headrace.controller.self_balancing.hindrances import hindrance
from headrace.controller.self_balancing.loads import ClusterLoad, Settings, Step
from headrace.controller.self_balancing.planning import Plan, plan
from headrace.controller.self_balancing.rates import RateSamples
from headrace.controller.self_balancing.reports import LoadReport, read_report
from headrace.controller.self_balancing.survey import circumstances, cluster_load, topics_with_moves
from headrace.controller.shell import Controller
from headrace.core.errors import HeadraceError
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from headrace.protocol.messages.describe_configs_response import DescribeConfigsResponse

ANSWER_SECONDS: Final = 10.0
VERSION: Final = 4
REST_INTERVALS: Final = 10
"""A partition that was moved stays for so many looks: what its move has changed must be seen first."""

T = TypeVar("T")


class SelfBalancing:
    """Of one term."""

    def __init__(
        self, runtime: Runtime, metadata: MetadataCache, controller: Controller, decisions: BalancingDecisions
    ) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._controller = controller
        self._decisions = decisions
        self._samples = RateSamples()
        self._next_look = 0.0
        self._rests_until: dict[TopicPartition, float] = {}
        self._to_elect: list[TopicPartition] = []
        """Those whose first replica should lead as soon as it has everything."""

    async def act(self) -> None:
        config, now = self._runtime.config, self._runtime.loop.time()
        if not config.headrace_balance_enable:
            await self._turn_off()
            return
        await self._end_moves()
        if now < self._next_look:
            return
        self._next_look = now + config.headrace_balance_interval_ms / 1000
        why = await self._look(now)
        if why is not None:
            self._decisions.idle(why)

    # --- what was begun ----------------------------------------------------------------------------------

    async def _turn_off(self) -> None:
        self._samples.forget()
        self._rests_until.clear()
        self._next_look = 0.0
        self._decisions.forget()
        if not topics_with_moves(self._metadata.image):
            return
        kept = await self._controller.submit(lambda machine: machine.cancel_balancing())
        why = "headrace.balance.enable is false"
        self._decisions.moved("self-balancing cancelled its moves", "moves cancelled", why)
        for partition, reason in kept.items():
            self._runtime.log.warning(
                "a move of self-balancing goes on", partition=str(partition), reason=reason
            )

    async def _end_moves(self) -> None:
        """What has arrived is led by its first replica, and is not said to be on its way any more."""
        if topics_with_moves(self._metadata.image):
            ended = await self._controller.submit(lambda machine: machine.end_balancing())
            for partition, has_arrived in ended.items():
                end = "as planned" if has_arrived else "otherwise: somebody else moved it"
                self._runtime.log.info("self-balancing move ended", partition=str(partition), how=end)
            self._to_elect += ended
        if self._to_elect:
            asked, self._to_elect = self._to_elect, []
            # Who is not in sync yet is elected by the balance of leaders, later.
            await self._controller.elect_leaders(ElectionType.PREFERRED, asked)

    # --- what comes next ---------------------------------------------------------------------------------

    async def _look(self, now: float) -> str | None:
        """Begin what should be moved. Otherwise the reason why nothing is."""
        config, image = self._runtime.config, self._metadata.image
        settings = settings_of(self._runtime)
        excluded = {int(each) for each in config.headrace_balance_excluded_brokers}
        found = circumstances(image, excluded)
        reports: dict[int, LoadReport] = {}
        if not found.down:  # who is down could not be asked, and is reason enough
            reports, found.silent = await self._ask_all()
        candidates = [each for each in reports if each not in excluded]
        why = hindrance(found, reports, settings, candidates)
        if why is not None:
            self._samples.forget()  # a cluster that is not whole has other rates than one that is
            return why
        self._samples.note(now, reports)
        if self._samples.seconds <= 0:
            return "rates are known at the next look"
        moving = _moving(image)
        most = settings.max_moves - len(moving)
        if most <= 0:
            return None
        self._rests_until = {key: until for key, until in self._rests_until.items() if until > now}
        load = await self._sliced(cluster_load(image, reports, self._samples.rates(), settings, excluded))
        planned = await self._sliced(plan(load, settings, most=most, resting=self._rests_until))
        if not planned.steps:
            return None if moving else _nothing_to_do(planned)
        await self._begin(planned, load, excluded, now)
        return None

    async def _begin(self, planned: Plan, load: ClusterLoad, excluded: set[int], now: float) -> None:
        begun = await self._controller.submit(
            lambda machine: machine.begin_balancing(planned.steps, excluded)
        )
        for partition, reason in begun.refused.items():
            self._decisions.idle(f"{partition}: {reason}")
        rest = REST_INTERVALS * self._runtime.config.headrace_balance_interval_ms / 1000
        for step in begun.steps:
            self._rests_until[step.partition] = now + rest
            self._tell(step, planned, load)
        self._to_elect += [step.partition for step in begun.steps if not step.adding]

    def _tell(self, step: Step, planned: Plan, load: ClusterLoad) -> None:
        worst = next((each for each in planned.uneven if each.goal_name == step.goal), planned.uneven[0])
        fields: dict[str, object] = {"partition": str(step.partition)}
        if step.adding:
            event = "self-balancing moves a partition"
            fields |= {"from_brokers": list(step.removing), "to_brokers": list(step.adding)}
            fields["bytes"] = load.partitions[step.partition].size_bytes
        else:
            event = "self-balancing changes a leader"
            fields |= {"from_broker": step.before[0], "to_broker": step.after[0]}
        self._decisions.moved(event, str(step), str(worst), **fields)

    # --- asking ------------------------------------------------------------------------------------------

    async def _ask_all(self) -> tuple[dict[int, LoadReport], dict[int, str]]:
        brokers = [int(each.broker_id) for each in self._metadata.image.brokers.values() if each.active]
        answers = await asyncio.gather(*(self._ask(broker_id) for broker_id in brokers))
        reports: dict[int, LoadReport] = {}
        silent: dict[int, str] = {}
        for broker_id, answer in zip(brokers, answers, strict=True):
            if isinstance(answer, LoadReport):
                reports[broker_id] = answer
            else:
                silent[broker_id] = answer
        return reports, silent

    async def _ask(self, broker_id: int) -> LoadReport | str:
        """This broker too, as any other: so it learns the same in the same way. Or why it does not tell."""
        resource = DescribeConfigsResource(
            resource_type=ResourceType.BROKER, resource_name=str(broker_id), configuration_keys=[LOAD]
        )
        request = DescribeConfigsRequest(resources=[resource])
        link = PeerLink(self._runtime, self._metadata, broker_id)
        try:
            answer = await ask(
                await link.open(), request, DescribeConfigsResponse, version=VERSION, timeout=ANSWER_SECONDS
            )
        except HeadraceError as error:
            return str(error)
        finally:
            link.close()
        (result,) = answer.results
        if result.error_code:
            code = ErrorCode(result.error_code).name
            return f"{code}; brokers need DESCRIBE and DESCRIBE_CONFIGS on the cluster"
        prefix = f"{LOAD}."
        figures = {
            each.name.removeprefix(prefix): each.value or ""
            for each in result.configs
            if each.name.startswith(prefix)
        }
        try:
            return await self._sliced(read_report(figures))
        except ValueError as error:
            return str(error)

    async def _sliced(self, slices: Iterable[T | None]) -> T:
        turns = self._runtime.turns
        for result in slices:
            if result is not None:
                return result
            if turns.is_over:
                await turns.next()
        raise AssertionError("the result comes last")


def settings_of(runtime: Runtime) -> Settings:
    config = runtime.config
    return Settings(
        threshold=config.headrace_balance_threshold_percent / 100,
        max_moves=config.headrace_balance_max_moves,
        max_disk_percent=config.headrace_balance_max_disk_percent,
        min_bytes=config.headrace_balance_min_bytes,
        min_rate=config.headrace_balance_min_bytes_per_second,
    )


def _moving(image: MetadataImage) -> list[TopicPartition]:
    """What self-balancing has begun: others' moves would be in its way."""
    return [
        TopicPartition(name, partition)
        for name in topics_with_moves(image)
        for partition in image.topics_by_name[name].exceptional_partitions()
        if image.topics_by_name[name].exceptional(partition).adding
    ]


def _nothing_to_do(planned: Plan) -> str:
    if planned.uneven:
        return f"{planned.uneven[0]}, and no move would make that better"
    return "the brokers are even"
