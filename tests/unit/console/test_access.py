"""Who may do what: as the rules say it, and nothing to a viewer whom the brokers would not tell it."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from headrace.client.acls import AuthorizerSettings
from headrace.client.cluster import Cluster
from headrace.console.access.asking import AccessSource
from headrace.console.access.grants import COLUMNS, grants
from headrace.console.access.seen import AccessSeen, Rules
from headrace.console.http.app import application
from headrace.console.http.records import Source
from headrace.console.http.sights import SCOPE, Sight
from headrace.doctor.model import Unknown
from headrace.security.acl import (
    CLUSTER_NAME,
    EVERYONE,
    AclRule,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from headrace.security.acl_index import AclIndex
from headrace.security.rights import Authorizer
from tests.console.made_up_access import SEEN, UNANSWERED, MadeUpAccess, rule
from tests.console.serving import CLUSTERS
from tests.unit.console.asking import Answered, ask, asked
from tests.unit.console.test_pages import checked, nobody, words

EVERY = ("/access", "/access/rules", "/access/others", "/access/question", "/topics/orders/access")


def app_of(found: AccessSeen) -> Any:
    return application(CLUSTERS["small"](), Source(nobody), access=MadeUpAccess(found))


def drawn_rules(chance: random.Random) -> list[AclRule]:
    return [
        rule(
            chance.choice(["User:a", "User:b", EVERYONE]),
            chance.choice([*COLUMNS[ResourceType.TOPIC], Operation.ALL]),
            CLUSTER_NAME if is_cluster else chance.choice(["orders", "ord", "*", "clicks"]),
            ResourceType.CLUSTER if is_cluster else ResourceType.TOPIC,
            PatternType.LITERAL if is_cluster else chance.choice([PatternType.LITERAL, PatternType.PREFIXED]),
            chance.choice(["*", "10.0.0.1", "10.0.0.2"]),
            chance.choice([Permission.ALLOW, Permission.ALLOW, Permission.DENY]),
        )
        for _ in range(chance.randrange(8))
        for is_cluster in [chance.random() < 0.15]
    ]


@pytest.mark.parametrize("seed", range(300))
def test_a_grant_says_what_the_authorizer_decides(seed: int) -> None:
    chance = random.Random(seed)
    found = drawn_rules(chance)
    settings = AuthorizerSettings(frozenset(), chance.random() < 0.3)
    authorizer = Authorizer(AclIndex(found, allow_everyone_if_no_acl_found=settings[1]))
    told = {
        grant.principal: grant.may for grant in grants(Rules(found, settings), ResourceType.TOPIC, "orders")
    }
    for who in ("User:a", "User:b", "User:stranger"):
        for host in ("10.0.0.1", "10.0.0.2", "10.0.0.3"):
            for at, operation in enumerate(COLUMNS[ResourceType.TOPIC]):
                wanted = [(operation, ResourceType.TOPIC, "orders")]
                if operation == Operation.DELETE:
                    wanted.append((operation, ResourceType.CLUSTER, CLUSTER_NAME))
                rights = authorizer.rights_of(who, host)
                may = told.get(who, told.get(EVERYONE))
                said = may is not None and (may[at].allowed != (host in may[at].unlike))
                assert said == rights.allows_any(*wanted), (who, host, operation, found)


def test_each_page_is_whole_with_hostile_names() -> None:
    for path in (*EVERY, "/access/principals/User:shop", "/access/principals/User:%2A"):
        for found in (SEEN, UNANSWERED, SEEN._replace(rules=None)):
            answered = ask(app_of(found), path)
            assert answered.status == 200, path
            text = checked(answered)
            assert "<script>document" not in text
            assert "\u202e" not in text
            assert ask(app_of(found), f"{path}?format=json").json["look"] == 2


def test_what_nobody_knows_is_said() -> None:
    text = words(ask(app_of(UNANSWERED), "/access/others").text)
    for name in ("Rules are", "Users with passwords are", "Tokens are", "Quotas are", "What was denied is"):
        assert f"{name} not shown: nothing listens at 127.0.0.1:1." in text
    assert "No quota is set" not in text
    assert "Nothing was denied" not in text
    assert "No users and no rules" not in words(ask(app_of(UNANSWERED), "/access").text)
    assert "Nobody" not in words(ask(app_of(UNANSWERED), "/topics/orders/access").text)


def test_a_cluster_without_an_authorizer_says_so() -> None:
    for path in EVERY:
        assert "Everybody may do everything" in words(ask(app_of(SEEN._replace(rules=None)), path).text)


def as_viewer(path: str, *given: AclRule) -> Answered:
    """User:viewer, with these rules for it."""
    sight = Sight(Authorizer(AclIndex(given)).rights_of("User:viewer", "10.0.0.1"), f"viewer {given}")

    class Guarded:
        def __init__(self, app: Any) -> None:
            self._app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await self._app({**scope, SCOPE: sight}, receive, send)

    app = application(CLUSTERS["small"](), Source(nobody), access=MadeUpAccess(SEEN), guard=Guarded)
    return asyncio.run(asked(app, path))


def test_a_viewer_without_rights_sees_its_own_and_why_not_the_rest() -> None:
    mine = rule("User:viewer", Operation.READ, "orders")
    for path in (*EVERY, "/access/principals/User:shop"):
        text = as_viewer(path, mine).text
        for hidden in ("SCRAM", "User:intern", "Zk3nYQ", "producer_byte_rate", "10.0.0.9", "User:admin"):
            assert hidden not in text, (path, hidden)
    text = words(as_viewer("/access", mine).text)
    assert "Rules are not shown: to see them takes DESCRIBE on the cluster." in text
    assert "Quotas are not shown: to see them takes DESCRIBE_CONFIGS on the cluster." in text
    assert "You are User:viewer ." in text or "You are User:viewer." in text
    assert "topic orders READ, DESCRIBE" in text
    assert "You may READ, DESCRIBE." in words(as_viewer("/topics/orders/access", mine).text)
    assert as_viewer("/topics/clicks/access", mine).status == 404


def test_a_viewer_who_may_describe_the_cluster_sees_rules_and_users_and_no_quotas() -> None:
    describe = rule("User:viewer", Operation.DESCRIBE, CLUSTER_NAME, ResourceType.CLUSTER)
    text = words(as_viewer("/access", describe).text)
    assert "SCRAM-SHA-512" in text
    assert "Rules are not shown" not in text
    assert "Quotas are not shown" in text
    assert "17 times" not in text
    tokens = rule("User:viewer", Operation.DESCRIBE, "Zk3nYQ", ResourceType.DELEGATION_TOKEN)
    assert "Zk3nYQ" in as_viewer("/access/others", tokens).text
    assert "b&gt;id" not in as_viewer("/access/others", tokens).text


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("principal=billing&operation=READ&name=orders", "Yes : User:billing may READ topic orders."),
        ("principal=shop&operation=WRITE&name=orders&host=10.0.0.66", "No : User:shop may not WRITE topic"),
        ("principal=admin&operation=ALTER&kind=cluster", "It is a super user"),
        ("principal=nobody&operation=READ&name=orders", "headrace acl add --allow-principal User:nobody"),
        ("principal=a&operation=FLY&name=orders", "is not an operation"),
        ("principal=a&operation=READ&name=orders&host=example.com", "Rules know addresses and not names"),
        ("principal=a&operation=READ", "Write the name"),
    ],
)
def test_a_question_is_answered_with_the_rule_that_decides(query: str, said: str) -> None:
    answered = ask(app_of(SEEN), f"/access/question?{query}")
    assert answered.status == 200
    assert said in words(checked(answered)).replace("&#39;", "'")


def test_brokers_are_asked_once_for_all_viewers() -> None:
    asked_times = 0
    now = 0.0

    class Counting(AccessSource):
        async def _ask(self) -> AccessSeen:
            nonlocal asked_times
            asked_times += 1
            await asyncio.sleep(0)
            return SEEN

    async def look() -> None:
        nonlocal now
        source = Counting(lambda: Cluster("127.0.0.1:1"), lambda: now)
        await asyncio.gather(*(source.seen() for _ in range(50)))
        assert asked_times == 1
        now = 11.0
        await source.seen()
        assert asked_times == 2

    asyncio.run(look())


def test_a_cluster_that_does_not_answer_makes_every_part_unknown() -> None:
    found = asyncio.run(AccessSource(lambda: Cluster("127.0.0.1:1")).seen())
    assert all(isinstance(part, Unknown) for part in found[1:])
