"""Every address of the console, asked for by somebody who may do nothing: none of them tells what there is.

The routes are those of the application itself, so that a page that is added is asked for too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.client.cluster import Cluster
from headrace.client.errors import Refused, Unreachable
from headrace.console.changes.making import Actor
from headrace.console.http import acting, changes, producing
from headrace.console.http.app import ROUTES, application
from headrace.console.http.records import Source
from headrace.console.http.sights import SCOPE, Sight
from headrace.observe.history import History, Track
from headrace.protocol.error_codes import ErrorCode
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.acl_index import AclIndex
from headrace.security.rights import Authorizer
from tests.console import made_up_services
from tests.console.made_up_access import SEEN, MadeUpAccess
from tests.console.made_up_changes import MadeUpChanges, made_up_changes
from tests.console.serving import Still
from tests.unit.console.asking import FORM, ask, post
from tests.unit.observe.made_up import NOW_MS, broken_look, small_look, snapshot_of
from tests.unit.observe.made_up_tiers import FAILURE, outage_look

SECRET: Final = ("orders", "clicks", "billing", "reports", "kafka1", "rack-", "warehouse", "User:shop")
"""Topics, groups, brokers, connectors and users of the made-up clusters."""
RATE: Final = 4711.0
STRANGER: Final = "User:жанна\u202e"
NAMES: Final = ("orders", "reports", "orders-value", "warehouse", "User:shop", "1")
_MADE_UP: Final = ("/reset/plan", "/deletion")
"""Plans that the brokers answer, asked as the viewer: what a stand-in says is of no worth here. That they
refuse is shown by integration/test_console_rights.py."""


def addresses() -> Iterator[str]:
    for route in (*ROUTES, *changes.ROUTES, *producing.ROUTES):
        path = route.path.replace("{partition}", "0").replace("{offset}", "0").replace("{number}", "1")
        if not path.endswith(_MADE_UP):
            for name in NAMES if "{name}" in path else ("",):
                yield path.replace("{name}", name)


PATHS: Final = sorted(set(addresses()))
DESCRIBES_ORDERS: Final = AclRule(
    ResourceType.TOPIC, "orders", PatternType.LITERAL, STRANGER, "*", Operation.DESCRIBE, Permission.ALLOW
)


def nobody() -> Cluster:
    raise Unreachable("127.0.0.1", 1)


def served(*rules: AclRule, watch: Still | None = None) -> ASGIApp:
    """To STRANGER, who has logged in with a password."""
    rights = Authorizer(AclIndex(rules)).rights_of(STRANGER, "10.0.0.9")
    making, _ = made_up_changes()

    def guard(app: ASGIApp) -> ASGIApp:
        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            actor = Actor(STRANGER, "10.0.0.9")
            sight = Sight(rights, f"{STRANGER} {len(rules)}")
            await app({**scope, SCOPE: sight, acting.SCOPE: actor}, receive, send)

        return guarded

    return application(
        watch or busy(),
        Source(nobody),
        guard=guard,
        making=making,
        access=MadeUpAccess(SEEN),
        services=made_up_services.services(),
    )


def busy() -> Still:
    history = History()
    for name in ("", "orders"):
        for track in (Track.IN, Track.OUT):
            history.add(track, name, NOW_MS, RATE)
    history.add(Track.LAG, "reports", NOW_MS, RATE)
    return Still(snapshot_of(small_look(0), small_look(1)), history)


def told_of(text: str, asked: str) -> Iterator[str]:
    """Without the names that stand in the address, which a page may repeat."""
    for secret in SECRET:
        if secret not in asked and secret in text:
            yield secret
    if str(RATE) in text:
        yield "a rate"


@pytest.fixture(scope="module")
def stranger() -> ASGIApp:
    return served()


@pytest.mark.parametrize("path", PATHS)
def test_no_address_tells_what_there_is(stranger: ASGIApp, path: str) -> None:
    # Both of these are the same for everybody.
    if path.startswith(("/static", "/healthz", "/access/question")):
        return
    for form in ("", "?format=json"):
        answered = ask(stranger, path + form)
        assert answered.status < 500 or answered.status == 502, path
        assert list(told_of(answered.text, path)) == [], path
        if "/records" in path or "/produce" in path or "/replay" in path:
            assert answered.status in (403, 404, 405), path


@pytest.mark.parametrize("path", [path for path in PATHS if path.endswith("/plan")])
def test_no_form_tells_more(stranger: ASGIApp, path: str) -> None:
    answered = post(
        stranger, path, {"to": "clicks", "records": "0:1", "value": "x", "confirmation": "made up"}
    )
    assert answered.status in (303, 403, 404, 409), path
    assert list(told_of(answered.text, path + "clicks")) == []


def test_what_stands_in_the_address_is_said_to_be_there_to_nobody(stranger: ASGIApp) -> None:
    """One that is there and one that is not look the same."""
    for kind in ("topics", "groups", "audit", "schemas", "connectors"):
        there = {"topics": "orders", "groups": "reports", "audit": "orders", "schemas": "orders-value"}
        name = there.get(kind, "warehouse")
        answered, other = ask(stranger, f"/{kind}/{name}"), ask(stranger, f"/{kind}/never-was")
        assert answered.status == other.status == 404
        assert answered.text.replace(name, "?") == other.text.replace("never-was", "?")


def test_who_sees_a_topic_sees_nothing_of_groups_that_are_hidden() -> None:
    app = served(DESCRIBES_ORDERS)
    row = ask(app, "/topics?format=json").json["listing"]["rows"][0]
    assert (row["name"], row["lag"], row["late_ms"], row["rate_out"]) == ("orders", None, None, None)
    topic = ask(app, "/topics/orders?format=json").json
    assert set(topic["trend_out"]) == {None}
    assert RATE in topic["trend_in"]
    now = ask(app, "/?format=json").json
    assert set(now["trend_in"]) == set(now["trend_out"]) == {None}


def test_a_broken_cluster_tells_a_stranger_nothing() -> None:
    app = served(watch=Still(snapshot_of(broken_look(0)), History()))
    for path in ("/", "/topics", "/brokers", "/transactions", "/moves"):
        text = ask(app, path).text
        assert "lost" not in text
        assert list(told_of(text, path)) == [], path


def test_a_tier_tells_a_stranger_nothing() -> None:
    watch = Still(snapshot_of(outage_look(1)), History())
    nothing, little = served(watch=watch), served(DESCRIBES_ORDERS, watch=watch)
    for path in ("/tier", "/tier?format=json", "/tier/orders", "/tier/ledger"):
        for app in (nothing, little):
            text = ask(app, path).text
            assert FAILURE not in text
            assert not any(name in text for name in ("clicks", "ledger-test", "legacy", "sessions")), path
        assert "orders" in path or "orders" not in ask(nothing, path).text
    assert "No topic that you may see" in ask(nothing, "/tier").text
    assert "To see whether the store answers takes DESCRIBE" in ask(little, "/tier").text
    assert ask(little, "/tier/orders").status == 200
    there, other = ask(nothing, "/tier/orders"), ask(nothing, "/tier/never-was")
    assert there.status == other.status == 404
    assert there.text.replace("orders", "?") == other.text.replace("never-was", "?")


def test_a_principal_of_any_letters_gets_pages_that_are_not_sent_again(stranger: ASGIApp) -> None:
    answered = ask(stranger, "/topics")
    assert answered.status == 200
    assert ask(stranger, "/topics", if_none_match=answered.headers["etag"]).status == 304
    assert "\u202e" not in answered.text


@pytest.mark.parametrize(
    "path",
    [
        f"/changes/{'9' * 5000}",
        f"/topics/orders/records/0/{'9' * 5000}",
        f"/topics/orders/records/{'9' * 5000}/0",
        "/topics/orders/records/%D9%A3/0",
        "/topics/orders/records/-1/0",
    ],
)
def test_numbers_without_end_are_no_page(path: str) -> None:
    assert ask(served(DESCRIBES_ORDERS), path).status == 404


def test_no_page_has_a_link_to_another_host(stranger: ASGIApp) -> None:
    for path in ("//evil.example/x", "///evil.example/topics", "//evil.example", "/\\evil.example/x"):
        text = ask(stranger, path).text
        assert '"//' not in text, path
        assert '"/\\' not in text, path
        assert "evil.example" not in text or re.search('href="/(%5C)?evil.example', text)


def test_a_form_of_very_many_fields_is_not_read(stranger: ASGIApp) -> None:
    fields = {f"setting.{number:x}": "1" for number in range(2000)}
    answered = post(stranger, "/topics/orders/settings/plan", fields)
    assert answered.status == 403
    assert "too many fields" in answered.text


async def test_half_a_form_is_nothing_to_log(caplog: pytest.LogCaptureFixture, stranger: ASGIApp) -> None:
    """Three hundred of them were twenty thousand lines."""
    sent: list[str] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message["type"])

    headers = [(b"host", b"localhost"), (b"origin", b"http://localhost"), (b"content-type", FORM.encode())]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/topics/orders/deletion",
        "raw_path": b"/topics/orders/deletion",
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "state": {},
    }
    await stranger(scope, receive, send)
    assert not caplog.records
    assert sent[0] == "http.response.start"


def test_who_may_not_is_told_so_and_brokers_are_not_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: object) -> None:
        raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "topic orders: this user has no right to do that")

    monkeypatch.setattr(MadeUpChanges, "settings", refused)
    answered = ask(served(DESCRIBES_ORDERS), "/topics/orders/settings")
    assert answered.status == 403
    assert "this user has no right to do that" in answered.text
