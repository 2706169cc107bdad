"""Carrying out a plan, step by step. Each step is safe to interrupt: a new plan has what is left of it.

What is new comes first, so that nobody lacks meanwhile what was to stay; what is taken away comes last.
Replicas move before partitions are added, because new ones get as many replicas as those that are there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeVar

from headrace.client.throttles import Move
from headrace.config.secret import Secret
from headrace.core.ids import TopicPartition
from headrace.desired.changes import (
    ConnectorChange,
    LinkChange,
    LinkCreation,
    LinkDeletion,
    QuotaChange,
    RuleAddition,
    RuleRemoval,
    SubjectChange,
    TopicChange,
    TopicCreation,
    TopicDeletion,
    UserChange,
)
from headrace.desired.plan import Plan
from headrace.desired.schemas import in_order_of_references
from headrace.security.acl import AclRule

T = TypeVar("T")

AT_ONCE: Final = 200
"""Topics or rules of one step."""


class Administration(Protocol):
    """Whoever changes the cluster. Each returns when what was asked for is so, also if it was so before."""

    async def create_topics(self, topics: Sequence[TopicCreation]) -> None: ...

    async def change_settings(self, topics: Sequence[TopicChange]) -> None: ...

    async def move_replicas(self, moves: Mapping[TopicPartition, Move]) -> None: ...

    async def add_partitions(self, totals: Mapping[str, int]) -> None: ...

    async def delete_topics(self, names: Sequence[str]) -> None: ...

    async def create_link(self, creation: LinkCreation) -> None: ...

    async def change_link(self, change: LinkChange) -> None: ...

    async def delete_link(self, name: str) -> None: ...

    async def change_user(self, change: UserChange, password: Secret | None) -> None: ...

    async def add_rules(self, rules: Sequence[AclRule]) -> None: ...

    async def remove_rules(self, rules: Sequence[AclRule]) -> None: ...

    async def change_quota(self, change: QuotaChange) -> None: ...

    async def change_subject(self, change: SubjectChange) -> None: ...

    async def delete_subject(self, name: str) -> None: ...

    async def put_connector(self, change: ConnectorChange) -> None: ...

    async def delete_connector(self, name: str) -> None: ...


class Step(NamedTuple):
    words: str
    run: Callable[[], Awaitable[None]]


async def carry_out(
    plan: Plan,
    administration: Administration,
    passwords: Mapping[str, Secret],
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    todo = steps(plan, administration, passwords)
    for number, step in enumerate(todo, start=1):
        tell(f"{number} of {len(todo)}: {step.words}")
        await step.run()


def steps(plan: Plan, administration: Administration, passwords: Mapping[str, Secret]) -> list[Step]:
    users = _of(plan, UserChange)
    changed = _of(plan, TopicChange)
    moves = {partition: move for each in changed for partition, move in each.moves.items()}
    totals = {each.name: each.partitions[1] for each in changed if each.partitions is not None}
    todo = _slices("create topics", administration.create_topics, _of(plan, TopicCreation))
    todo += [
        Step(f"link {each.name}", partial(administration.create_link, each))
        for each in _of(plan, LinkCreation)
    ]
    todo += [
        Step(f"link {each.name}", partial(administration.change_link, each)) for each in _of(plan, LinkChange)
    ]
    todo += _slices(
        "change settings", administration.change_settings, [each for each in changed if each.settings]
    )
    todo += [_user(each, administration, passwords) for each in users if each.verb != "delete"]
    todo += _slices("add rules", administration.add_rules, [each.rule for each in _of(plan, RuleAddition)])
    todo += [
        Step(f"quota {each.name}", partial(administration.change_quota, each))
        for each in _of(plan, QuotaChange)
    ]
    if moves:
        todo.append(Step("move replicas", partial(administration.move_replicas, moves)))
    if totals:
        todo.append(Step("add partitions", partial(administration.add_partitions, totals)))
    todo += _services(plan, administration)
    todo += _slices(
        "remove rules", administration.remove_rules, [each.rule for each in _of(plan, RuleRemoval)]
    )
    todo += [_user(each, administration, passwords) for each in users if each.verb == "delete"]
    todo += [
        Step(f"delete link {each.name}", partial(administration.delete_link, each.name))
        for each in _of(plan, LinkDeletion)
    ]
    todo += _slices(
        "delete topics", administration.delete_topics, [each.name for each in _of(plan, TopicDeletion)]
    )
    return todo


def _services(plan: Plan, administration: Administration) -> list[Step]:
    """Schemas before connectors, which use them; what is deleted the other way round, and all of it before
    the topics that it reads and writes."""
    subjects, connectors = _of(plan, SubjectChange), _of(plan, ConnectorChange)
    kept = [each for each in subjects if each.verb != "delete"]
    schemas = {each.name: None if each.schema is None else each.schema[1] for each in kept}
    ordered = in_order_of_references(schemas, [(each.name, each) for each in kept])
    gone = [each for each in subjects if each.verb == "delete"]
    former = {each.name: None if each.schema is None else each.schema[0] for each in gone}
    going = in_order_of_references(former, [(each.name, each) for each in gone])
    return [
        *(Step(f"schema {each.name}", partial(administration.change_subject, each)) for each in ordered),
        *(
            Step(f"connector {each.name}", partial(administration.put_connector, each))
            for each in connectors
            if each.verb != "delete"
        ),
        *(
            Step(f"delete connector {each.name}", partial(administration.delete_connector, each.name))
            for each in connectors
            if each.verb == "delete"
        ),
        *(
            Step(f"delete schema {each.name}", partial(administration.delete_subject, each.name))
            for each in reversed(going)
        ),
    ]


def _of(plan: Plan, kind: type[T]) -> list[T]:
    return [each for each in plan.changes if isinstance(each, kind)]


def _user(change: UserChange, administration: Administration, passwords: Mapping[str, Secret]) -> Step:
    return Step(
        f"user {change.name}", partial(administration.change_user, change, passwords.get(change.name))
    )


def _slices(words: str, run: Callable[[Sequence[T]], Awaitable[None]], items: Sequence[T]) -> list[Step]:
    return [Step(words, partial(run, some)) for some in _in_slices(items)]


def _in_slices(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for at in range(0, len(items), AT_ONCE):
        yield items[at : at + AT_ONCE]
