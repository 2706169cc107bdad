"""Changes from the console: only where allowed, only what was agreed to, once, and told truthfully."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, cast

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.client.errors import ConnectionLost, Refused, Unreachable
from headrace.config.secret import Secret
from headrace.console.changes.making import Actor
from headrace.console.http import acting, sights
from headrace.console.http.app import application
from headrace.console.http.guard import Guard
from headrace.console.http.records import Source
from headrace.console.http.sights import Sight
from headrace.http.gate import Gate
from headrace.protocol.error_codes import ErrorCode
from headrace.registry.rights import Rules
from headrace.security.principal import user
from tests.console.made_up_changes import Obedient, made_up_changes
from tests.console.serving import CLUSTERS
from tests.unit.console.asking import Answered, ask, post
from tests.unit.console.test_pages import checked, nobody, words

PLAN = "/topics/orders/settings/plan"
WANTED = {"setting.retention.ms": "1000"}
PAGES = (
    "/topics/orders/settings",
    f"{PLAN}?setting.retention.ms=1000",
    f"{PLAN}?setting.retention.ms=604800000",
    f"{PLAN}?setting.retention.ms=1",
    "/topics/orders/deletion",
    "/topics/orders/leaders",
    "/topics/orders/moves",
    "/topics/orders/produce",
    "/topics/orders/replay?record=0:1&record=0:2",
    "/topics/orders/replay/plan?records=0:1-2&to=clicks",
    "/groups/reports/reset",
    "/groups/reports/reset/plan?to=earliest",
    "/changes",
)


def changing() -> tuple[ASGIApp, Obedient]:
    making, obedient = made_up_changes()
    return application(CLUSTERS["small"](), Source(nobody), making=making), obedient


def agreed(app: ASGIApp, path: str, **more: str) -> dict[str, str]:
    """The fields of the form that the plan's page has."""
    view = ask(app, f"{path}{'&' if '?' in path else '?'}format=json", **more).json
    return {**dict(view["fields"]), "confirmation": view["confirmation"]}


def told(app: ASGIApp, answered: Answered, **more: str) -> Any:
    assert answered.status == 303
    return ask(app, f"{answered.headers['location']}?format=json", **more).json


@pytest.mark.parametrize("path", PAGES)
def test_each_page_is_whole(path: str) -> None:
    app, obedient = changing()
    answered = ask(app, path)
    assert answered.status == 200
    assert "<h1>" in checked(answered)
    assert "<script>document" not in answered.text
    assert obedient.told == []
    assert ask(app, f"{path}{'&' if '?' in path else '?'}format=json").json["page"] in (
        "topics",
        "groups",
        "changes",
    )


@pytest.mark.parametrize("path", [path for path in PAGES if path != "/changes"])
def test_without_the_option_there_is_no_such_page_and_no_button(path: str) -> None:
    app = application(CLUSTERS["small"](), Source(nobody))
    bare = path.partition("?")[0]
    assert ask(app, path).status == 404
    assert post(app, bare, {}).status == 404
    for shown in ("/topics/orders", "/groups/reports", "/moves", "/changes"):
        page = ask(app, shown).text
        assert 'method="post"' not in page
        assert "…</a>" not in page
        assert "/settings" not in page
    assert "without --allow-changes" in words(ask(app, "/changes").text)


def test_a_plan_then_a_yes_then_what_came_of_it() -> None:
    app, obedient = changing()
    page = words(ask(app, f"{PLAN}?setting.retention.ms=1000").text)
    assert "retention.ms 604800000 → becomes 1000" in page
    assert "Made as the console&#39;s own user." in page
    assert obedient.told == []
    found = told(app, post(app, PLAN, agreed(app, f"{PLAN}?setting.retention.ms=1000")))
    assert obedient.told == ["retention.ms=1000"]
    assert (found["outcome"], found["left"], found["said"]) == ("done", [], "")
    assert found["told"] == ["~ topic orders", "retention.ms: 604800000 -> 1000"]
    assert found["steps"] == ["1 of 1: change settings"]
    assert "A look afterwards finds all of it done." in words(checked(ask(app, "/changes/1")))
    assert "Change topic orders" in words(checked(ask(app, "/changes")))
    assert ask(app, "/changes/2").status == 404


def test_a_button_that_is_pressed_twice_means_one_change() -> None:
    app, obedient = changing()
    fields = agreed(app, f"{PLAN}?setting.retention.ms=1000")
    first, second = post(app, PLAN, fields), post(app, PLAN, fields)
    assert first.headers["location"] == second.headers["location"]
    assert obedient.told == ["retention.ms=1000"]
    told(app, post(app, PLAN, agreed(app, f"{PLAN}?setting.retention.ms=2000")))
    again = agreed(app, f"{PLAN}?setting.retention.ms=1000")
    assert told(app, post(app, PLAN, again))["number"] == 3, "the same change once more is another one"


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"confirmation": ""}, PLAN),
        ({"confirmation": "made.up"}, PLAN),
        ({"setting.retention.ms": "2000"}, PLAN),
        ({}, "/topics/clicks/settings/plan"),
    ],
)
def test_a_yes_is_to_one_plan(fields: Mapping[str, str], path: str) -> None:
    app, obedient = changing()
    given = {**agreed(app, f"{PLAN}?setting.retention.ms=1000"), **fields}
    answered = post(app, path, given)
    assert answered.status == 409
    assert "Nothing was changed: the cluster has changed since" in words(checked(answered))
    assert obedient.told == []
    assert ask(app, "/changes?format=json").json["made"] == []


def test_what_has_changed_since_the_plan_is_shown_first() -> None:
    app, obedient = changing()
    fields = agreed(app, f"{PLAN}?setting.retention.ms=1000")
    obedient.retention = "5"
    answered = post(app, PLAN, fields)
    assert "retention.ms 5 → becomes 1000" in words(answered.text)
    assert (answered.status, obedient.told) == (409, [])


def test_what_would_be_refused_is_not_asked() -> None:
    app, obedient = changing()
    page = ask(app, f"{PLAN}?setting.retention.ms=1").text
    assert "The retention is too short." in words(page)
    assert 'method="post"' not in page
    fields = {**agreed(app, f"{PLAN}?setting.retention.ms=1000"), "setting.retention.ms": "1"}
    assert post(app, PLAN, fields).status == 409
    assert obedient.told == []


def test_a_name_has_to_be_typed() -> None:
    app, obedient = changing()
    path = "/topics/orders/deletion"
    fields = agreed(app, path)
    for typed in ({}, {"typed": "order"}, {"typed": "clicks"}):
        answered = post(app, path, {**fields, **typed})
        assert (answered.status, obedient.told) == (409, [])
        assert "topic orders has another name" in words(answered.text)
    assert told(app, post(app, path, {**fields, "typed": "orders"}))["outcome"] == "done"
    assert obedient.told == ["delete orders"]


@pytest.mark.parametrize(
    ("failure", "outcome", "said"),
    [
        (Refused(ErrorCode.POLICY_VIOLATION, "a policy forbids this"), "failed", "A policy forbids this."),
        (Unreachable("broker", 1), "failed", "Nothing listens at broker:1"),
        (ConnectionLost("the connection ended"), "not known", "The connection ended."),
    ],
)
def test_what_the_brokers_say_is_told(failure: Any, outcome: str, said: str) -> None:
    app, obedient = changing()
    obedient.failure = failure
    found = told(app, post(app, PLAN, agreed(app, f"{PLAN}?setting.retention.ms=1000")))
    assert (found["outcome"], found["left"]) == (outcome, ["~ topic orders", found["told"][1]])
    assert found["said"].startswith(said)
    page = words(checked(ask(app, "/changes/1")))
    assert said in page
    assert "A look afterwards still finds to do" in page


def test_a_form_comes_from_a_page_of_ours() -> None:
    app, obedient = changing()
    fields = agreed(app, f"{PLAN}?setting.retention.ms=1000")
    assert post(app, PLAN, fields, origin="http://evil.example").status == 403
    assert post(app, PLAN, fields, sec_fetch_site="cross-site").status == 403
    assert post(app, PLAN, fields, content_type="text/plain").status == 403
    too_long = ask(
        app,
        PLAN,
        method="POST",
        body="x" * (4 * 1024 * 1024 + 1),
        origin="http://127.0.0.1:9600",
        content_type="application/x-www-form-urlencoded",
    )
    assert too_long.status == 403
    assert obedient.told == []


class _Gate:
    """Lets everybody in as who they say."""

    challenge = "Basic"

    async def admit(self, authorization: str | None, certificate: bytes | None) -> object:
        if authorization is None:
            return user("certified")
        return user(base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")[0])


class _Rules:
    async def rights(self, principal: object, host: str) -> None:
        return None


def login(name: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:secret-{name}".encode()).decode()


def guarded() -> tuple[ASGIApp, Obedient, list[Any]]:
    making, obedient = made_up_changes()
    acted: list[Any] = []
    before = making.cluster

    def cluster(actor: Actor) -> Any:
        acted.append(actor)
        return before(actor._replace(login=None))

    making.cluster = cluster  # type: ignore[method-assign]  # to see as whom it is done
    app = application(
        CLUSTERS["small"](),
        Source(nobody),
        guard=lambda app: Guard(app, cast(Gate, _Gate()), cast(Rules, _Rules())),
        making=making,
    )
    return app, obedient, acted


def test_a_change_is_made_as_whoever_asks() -> None:
    app, obedient, acted = guarded()
    alice = {"authorization": login("alice")}
    fields = agreed(app, f"{PLAN}?setting.retention.ms=1000", **alice)
    answered = post(app, PLAN, fields, authorization=login("mallory"))
    assert (answered.status, obedient.told) == (409, []), "a yes is nobody else's"
    found = told(app, post(app, PLAN, fields, **alice), **alice)
    assert found["principal"] == "User:alice"
    assert obedient.told == ["retention.ms=1000"]
    assert acted[-1].login == ("alice", Secret("secret-alice"))
    assert "secret-alice" not in str(found) + repr(acted)


def test_whoever_has_no_password_changes_nothing() -> None:
    app, obedient, _ = guarded()
    for path in PAGES[:-1]:
        assert ask(app, path).status == 403
        assert post(app, path.partition("?")[0], {}).status in (403, 405)
    assert obedient.told == []
    assert "…</a>" not in ask(app, "/topics/orders").text


def test_what_rules_deny_is_not_offered() -> None:
    making, _ = made_up_changes()

    class Denied:
        def __init__(self, app: ASGIApp) -> None:
            self._app = app

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            sight = Sight.unlimited()
            sight.may = lambda operation, kind, name: operation.name == "DELETE"  # type: ignore[method-assign]
            actor = Actor("User:alice", "", ("alice", Secret("x")))
            await self._app({**scope, sights.SCOPE: sight, acting.SCOPE: actor}, receive, send)

    app = application(CLUSTERS["small"](), Source(nobody), guard=Denied, making=making)
    page = ask(app, "/topics/orders").text
    assert re.findall(r"/topics/orders/(settings|leaders|deletion)", page) == ["deletion"]
