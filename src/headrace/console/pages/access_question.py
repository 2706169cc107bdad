"""May somebody do something, and why: as `headrace acl explain` answers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from headrace.client.acl_commands import command_of
from headrace.console.access.seen import AccessSeen
from headrace.console.pages.access import Decided, decided, kind_words
from headrace.console.pages.page import Page, Query
from headrace.doctor.model import Unknown
from headrace.security.acl import CLUSTER_NAME, WILDCARD, Operation, ResourceType
from headrace.security.acl_advice import explain
from headrace.security.acl_document import NotARule, operation_of, principal_of
from headrace.security.acl_index import Reason
from headrace.security.hosts import java_host

KINDS: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.CLUSTER,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user": ResourceType.USER,
}
_REASONS: Final = {
    Reason.SUPER_USER: "It is a super user, whom no rule concerns.",
    Reason.WRITES_SOME_TOPIC: "A right to WRITE some topic is enough for it.",
    Reason.NO_RULE: "No rule is about the {resource}.",
    Reason.NONE_MATCHES: "There are rules about the {resource}, and none of them is for this.",
}


class QuestionView(NamedTuple):
    decided: Decided
    not_shown: Sequence[str]
    kinds: Sequence[str]
    operations: Sequence[str]
    refused: str
    """Why there is no answer; empty also where nothing was asked."""
    asked: str
    allowed: bool | None
    because: str
    rule: str
    commands: Sequence[str]


def question(seen: AccessSeen, query: Query) -> Page:
    blank = QuestionView(
        decided(seen),
        [each for each in seen.not_shown if each.startswith("Rules")],
        list(KINDS),
        [each.name for each in Operation if each >= Operation.ALL],
        "",
        "",
        None,
        "",
        "",
        (),
    )
    if query.get("principal", "").strip():
        try:
            blank = _answered(blank, seen, query)
        except NotARule as error:
            blank = blank._replace(refused=f"{error}.")
        except ValueError:
            refused = "Rules know addresses and not names: write one as 10.0.0.7."
            blank = blank._replace(refused=refused)
    return Page("access_question.html", "May they?", "access", blank)


def _answered(view: QuestionView, seen: AccessSeen, query: Mapping[str, str]) -> QuestionView:
    who = principal_of(query.get("principal", "").strip())
    operation = operation_of(query.get("operation", "").strip() or "READ")
    kind = KINDS.get(query.get("kind", ""), ResourceType.TOPIC)
    name = CLUSTER_NAME if kind == ResourceType.CLUSTER else query.get("name", "").strip()
    address = query.get("host", "").strip()
    host = java_host(address) if address else WILDCARD
    if not name:
        return view._replace(refused="Write the name of what it is about.")
    where = "cluster" if kind == ResourceType.CLUSTER else f"{kind_words(kind).replace('-', ' ')} {name}"
    asked = f"{who} {{}} {operation.name} {where}{f' from {address}' if address else ''}"
    if seen.rules is None:
        return view._replace(
            asked=asked.format("may"), allowed=True, because="The cluster has no authorizer."
        )
    if isinstance(seen.rules, Unknown):
        return view
    given = seen.rules.settings
    found = explain(seen.rules.index, given.super_users, who, host, operation, kind, name)
    verdict, cure = found.verdict, found.cure
    because = "" if verdict.rule else _REASONS[verdict.reason].format(resource=where)
    if verdict.allowed and verdict.reason == Reason.NO_RULE:
        because += " allow.everyone.if.no.acl.found is set."
    return view._replace(
        asked=asked.format("may" if verdict.allowed else "may not"),
        allowed=verdict.allowed,
        because=because,
        rule="" if verdict.rule is None else str(verdict.rule),
        commands=()
        if cure is None
        else [
            *(command_of("remove", rule) for rule in cure.remove),
            *(command_of("add", rule) for rule in cure.add),
        ],
    )
