"""What services beside the brokers tell: within bounds, kept where they fail, without secrets, and to whom it
may be shown."""

from __future__ import annotations

import asyncio
import html
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import pytest
from click.testing import CliRunner

from headrace.cli.service_options import ServiceAddresses, service_options
from headrace.client.errors import ClientFailure
from headrace.client.rest import Rest, RestRefused
from headrace.console.http.app import application
from headrace.console.http.sights import SCOPE, Sight
from headrace.console.services import connect
from headrace.console.services.following import Asker, Followed
from headrace.console.services.registry import LEVELS_AT_ONCE, RegistryLooks
from headrace.console.services.services import Services
from headrace.doctor.model import Unknown
from headrace.security.acl import CLUSTER_NAME, AclRule, Operation, ResourceType
from headrace.security.acl_index import AclIndex
from headrace.security.rights import Authorizer
from tests.console.made_up_access import rule
from tests.console.made_up_services import (
    HOSTILE,
    ORDER,
    Scripted,
    connect_rest,
    registry_rest,
    schema,
    services,
)
from tests.console.serving import CLUSTERS, MadeUpSource
from tests.unit.console.asking import Answered, ask, asked
from tests.unit.console.test_pages import checked, words

NAME = "%3Cscript%3Edocument.title%3D%27taken%27%3C%2Fscript%3E%E2%80%AE%2F..%2Fx"
EVERY = ("/schemas", "/schemas/orders-value", f"/schemas/{NAME}", "/connectors", f"/connectors/{NAME}")


def app_of(found: Services | None, cluster: str = "small") -> Any:
    return application(CLUSTERS[cluster](), MadeUpSource(), services=found)


# --- looks ----------------------------------------


def test_all_pages_of_a_registry_are_read_and_one_that_has_none_is_not_asked_for_ever() -> None:
    class Paged(Scripted):
        has_pages = True

        def get(self, path: str) -> Any:
            found = super().get(path)
            if not path.startswith("/schemas") or not self.has_pages:
                return found
            query = dict(each.split("=") for each in path.partition("?")[2].split("&"))
            return found[int(query["offset"]) :][: int(query["limit"])]

    every = [schema(f"s-{at}", 1, at, ORDER) for at in range(1, 1101)]
    rest = Paged({"/schemas": every})
    seen = RegistryLooks().look(Asker(rest))
    assert (len(seen.subjects), seen.has_more) == (1100, False)
    rest.answers["/schemas"], rest.has_pages = every[:500], False
    rest.asked.clear()
    assert len(RegistryLooks().look(Asker(rest)).subjects) == 500
    assert sum(path.startswith("/schemas") for path in rest.asked) == 2


def test_levels_are_asked_for_some_at_a_time_and_first_where_somebody_looks() -> None:
    rest = Scripted({"/schemas": [schema(f"s-{at:03}", 1, at, ORDER) for at in range(1, 451)]})
    looks = RegistryLooks()
    for known in (LEVELS_AT_ONCE, 2 * LEVELS_AT_ONCE, 450):
        seen = looks.look(Asker(rest))
        assert sum(each.level is not None for each in seen.subjects.values()) == known
    rest.answers["/config/s-400"] = {"compatibilityLevel": "NONE"}
    looks.want("s-400")
    rest.asked.clear()
    assert looks.look(Asker(rest)).subjects["s-400"].level == "NONE"
    assert len(rest.asked) == 3 + LEVELS_AT_ONCE


def test_a_level_that_is_not_told_is_not_that_of_the_registry() -> None:
    class Refusing(Scripted):
        def get(self, path: str) -> Any:
            if path.startswith("/config/"):
                raise RestRefused("x" * 5000, 500)
            return super().get(path)

    rest = Refusing({"/schemas": [schema("a", 1, 1, ORDER)], "/config": {"compatibilityLevel": "FULL"}})
    followed = Followed(rest, RegistryLooks().look)
    followed.once()
    app = app_of(Services(followed))
    (row,) = ask(app, "/schemas?format=json").json["listing"]["rows"]
    assert (row["level"], row["is_own_level"]) == ("", False)
    assert "not told yet" in words(ask(app, "/schemas/a").text)
    rest.answers = {}
    followed.once()
    assert followed.told.failing == "Not found."


@pytest.mark.parametrize(
    "told", [None, {}, [7], [{"subject": "a"}], [schema("a", 1, 1, "x", references=[1])], "text"]
)
def test_what_is_no_registry_is_said_to_be_none(told: Any) -> None:
    followed = Followed(Scripted({"/schemas": told}), RegistryLooks().look)
    followed.once()
    assert "answers as no service does" in followed.told.failing
    assert followed.told.found is None


def test_what_was_told_is_kept_while_nobody_answers() -> None:
    rest = registry_rest()
    followed = Followed(rest, RegistryLooks().look)
    followed.once()
    before = followed.told
    rest.is_down = True
    followed.once()
    assert followed.told.found is before.found
    assert followed.told.at_ms == before.at_ms
    assert followed.told.failing == "No service answers at http://127.0.0.1:1: refused. Start one."
    rest.is_down = False
    followed.once()
    assert followed.told.failing == ""
    assert followed.told.look == 3


def test_a_thread_looks_and_pages_do_not() -> None:
    rest = registry_rest()
    looked = threading.Event()
    looks = RegistryLooks()

    def look(asker: Asker) -> Any:
        found = looks.look(asker)
        looked.set()
        return found

    followed = Followed(rest, look)
    followed.start()
    assert looked.wait(60)
    count = len(rest.asked)
    app = app_of(Services(followed, None, looks))
    for _ in range(5):
        assert ask(app, "/schemas").status == 200
    assert len(rest.asked) == count
    followed.stop()


@contextmanager
def listening(answer: bytes, pause: float) -> Iterator[str]:
    """Sends the answer, and then a byte after each pause."""
    server = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(answer)
            while not over.wait(pause):
                connection.sendall(b" ")

    def run() -> None:
        try:
            serve()
        except OSError:
            pass  # who asked has gone

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        over.set()
        server.close()
        thread.join()


def test_who_sends_slowly_or_without_end_is_not_waited_for() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n"
    with listening(head, 0.05) as url, pytest.raises(ClientFailure, match="sends for more than"):
        Rest(url, seconds=0.5).get("/")
    with listening(head + b"x" * 5000, 10) as url, pytest.raises(ClientFailure, match="more than 1000 bytes"):
        Rest(url, seconds=30, most_bytes=1000).get("/")
    with listening(b"what\r\n\r\n", 10) as url, pytest.raises(ClientFailure, match="no service answers"):
        Rest(url, seconds=30).get("/")


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    @click.command()
    @service_options
    def command(addresses: ServiceAddresses) -> None:
        addresses.services_within(1, 1)

    for option in ("--registry", "--connect"):
        for url in ("http://user:swordfish@host:1", "ftp://host", "host:1"):
            result = CliRunner().invoke(
                command, [option, url], env={"HEADRACE_REGISTRY": "", "HEADRACE_CONNECT": ""}
            )
            assert isinstance(result.exception, ClientFailure), url
            assert "swordfish" not in f"{result.exception} {result.exception.hint}"


# --- what workers tell ----------------------------------------


def test_connectors_are_without_secrets_whoever_runs_them() -> None:
    """Kafka Connect's workers hide nothing."""
    seen = connect.look(Asker(connect_rest()))
    assert "swordfish" not in repr(seen)
    settings = dict(seen.connectors["warehouse"].settings)
    assert settings["connection.password"] == "[hidden]"
    assert settings["connection.url"] == "postgresql://[hidden]@db:5432/shop"
    assert [task.part.state for task in seen.connectors["warehouse"].tasks] == ["RUNNING", ""]
    assert seen.connectors[HOSTILE].condition == "FAILED"
    assert seen.connectors["new"].condition == ""


# --- pages ----------------------------------------


def test_each_page_is_whole_with_hostile_names() -> None:
    app = app_of(services())
    for path in EVERY:
        answered = ask(app, path)
        assert answered.status == 200, path
        text = checked(answered)
        assert "<script>document" not in text
        assert "swordfish" not in text
        assert "\u202e" not in text
        assert ask(app, f"{path}?format=json").json["look"] == 2
    assert ask(app, "/schemas/nothing").status == ask(app, "/connectors/nothing").status == 404


def test_what_is_not_given_or_down_is_said_with_the_option() -> None:
    for found, said in (
        (None, "headrace console --registry"),
        (services(are_down=True), "No service answers at http://127.0.0.1:1: refused. Start one."),
    ):
        for path, option in (("/schemas", "--registry"), ("/connectors", "--connect")):
            text = words(checked(ask(app_of(found), path)))
            assert said.replace("--registry", option) in text
            assert "No subject." not in text
            assert "have no connector" not in text
        assert ask(app_of(found), "/schemas/orders-value").status == 404
    old = services()
    assert old.registry is not None
    old.registry.told = old.registry.told._replace(failing="It is gone.")
    text = words(checked(ask(app_of(old), "/schemas")))
    assert "tells nothing now. What you see is of" in text
    assert "orders-value" in text


def test_subjects_say_what_the_registry_says() -> None:
    rows = {
        row["name"]: row for row in ask(app_of(services()), "/schemas?format=json").json["listing"]["rows"]
    }
    order = rows["orders-value"]
    assert (
        order["versions"],
        order["schema_id"],
        order["level"],
        order["is_own_level"],
        order["referrers"],
    ) == (
        2,
        2,
        "FULL_TRANSITIVE",
        True,
        1,
    )
    assert (rows["refunds-value"]["level"], rows["refunds-value"]["is_own_level"]) == ("BACKWARD", False)
    assert (rows["payments-value"]["versions"], rows["payments-value"]["deleted"]) == (0, 1)
    text = words(ask(app_of(services()), "/schemas").text)
    assert "compatibility is BACKWARD. The registry is in mode READONLY." in text
    view = ask(app_of(services()), "/schemas/orders-value?format=json").json
    added = [line["text"].strip() for line in view["changes"] if line["sign"] == "+"]
    assert '"name": "paid",' in added
    assert '"name": "id",' not in added
    assert view["against"] == 1
    assert view["referrer_names"] == ["refunds-value"]
    back = ask(app_of(services()), "/schemas/orders-value?version=1&against=2&format=json").json
    assert {line["sign"] for line in back["changes"]} >= {"-"}


def test_connectors_say_what_the_workers_and_groups_say() -> None:
    view = ask(app_of(services()), "/connectors?format=json&sort=state").json
    rows = view["listing"]["rows"]
    assert [row["name"] for row in rows] == [HOSTILE, "new", "warehouse"]
    assert rows[0]["error"].startswith("java.lang.IllegalStateException")
    assert (rows[2]["running"], rows[2]["tasks"], rows[2]["worker"]) == (1, 2, "w1:8083")
    other = words(ask(app_of(services("another")), "/connectors").text)
    assert "The workers work for another cluster , another" in other
    text = words(checked(ask(app_of(services()), f"/connectors/{NAME}")))
    assert "Task 0: java.lang.IllegalStateException" in text
    assert "headrace connect offsets $'<" in html.unescape(text), "a name is no part of a shell's line"
    assert "has committed nothing yet" in words(ask(app_of(services()), "/connectors/warehouse").text)


def test_sinks_and_mirrors_are_as_far_as_their_groups() -> None:
    watch = CLUSTERS["small"]()
    seen = watch.snapshot
    assert seen is not None
    assert not isinstance(seen.groups, Unknown)
    behind = seen.groups["reports"]
    named = {name: behind._replace(group_id=name) for name in ("connect-warehouse", "mirror-dr")}
    translations = seen.topics["clicks"]._replace(name="__headrace_mirror_west", internal=True)
    watch.snapshot = seen._replace(
        groups={**seen.groups, **named}, topics={**seen.topics, translations.name: translations}
    )
    app = application(watch, MadeUpSource(), services=services(seen.view.cluster_id or ""))
    view = ask(app, "/connectors?format=json").json
    (sink,) = [row for row in view["listing"]["rows"] if row["name"] == "warehouse"]
    assert (sink["lag"], sink["late_ms"], sink["group"]) == (behind.lag, behind.late_ms, "connect-warehouse")
    assert [(job["group"], job["lag"]) for job in view["leaving"]] == [("mirror-dr", behind.lag)]
    assert [each["name"] for each in view["arriving"]] == ["west"]
    assert ask(app, "/connectors/warehouse?format=json").json["progress"]["lag"] == behind.lag
    for path in ("/connectors", "/connectors/warehouse", "/pipeline"):
        assert "1 h" in words(checked(ask(app, path))), path
    watch.snapshot = seen._replace(groups=Unknown("no coordinator answers"))
    for path in ("/connectors", "/connectors/warehouse"):
        assert "no coordinator answers" in words(ask(app, path).text)


def test_records_show_the_schema_beside() -> None:
    text = checked(ask(app_of(services()), "/topics/orders/records"))
    assert 'href="/schemas/orders-value?version=2"' in text
    assert "&#34;id&#34;: 7" in text
    assert "it ends within a value" in text
    assert "the registry has no such schema" in text
    assert (
        "the registry does not answer" in ask(app_of(services(are_down=True)), "/topics/orders/records").text
    )
    assert "written with schema 2" in ask(app_of(None), "/topics/orders/records").text


def as_viewer(path: str, *given: AclRule) -> Answered:
    """User:viewer, with these rules for it."""
    sight = Sight(Authorizer(AclIndex(given)).rights_of("User:viewer", "10.0.0.1"), f"viewer {given}")

    class Guarded:
        def __init__(self, app: Any) -> None:
            self._app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await self._app({**scope, SCOPE: sight}, receive, send)

    app = application(CLUSTERS["small"](), MadeUpSource(), services=services(), guard=Guarded)
    return asyncio.run(asked(app, path))


READS = rule("User:viewer", Operation.READ, "orders")
CONFIGS = rule("User:viewer", Operation.DESCRIBE_CONFIGS, CLUSTER_NAME, ResourceType.CLUSTER)


def test_a_viewer_who_may_not_see_settings_sees_no_subject_and_no_connector() -> None:
    for path in (*EVERY, "/connectors/warehouse"):
        for address in (path, f"{path}?format=json"):
            answered = as_viewer(address, READS)
            for hidden in (
                "FULL_TRANSITIVE",
                "w1:8083",
                "127.0.0.1:1",
                "IllegalState",
                "PostgresSink",
                "clicks",
            ):
                assert hidden not in answered.text, (address, hidden)
        assert as_viewer(path, READS).status == (200 if path in ("/schemas", "/connectors") else 404)
    assert "To see them takes DESCRIBE_CONFIGS on the cluster." in as_viewer("/schemas", READS).text


def test_a_viewer_of_settings_sees_the_subjects_of_their_topics() -> None:
    rows = json.loads(as_viewer("/schemas?format=json", READS, CONFIGS).text)["listing"]["rows"]
    assert [row["name"] for row in rows] == ["orders-key", "orders-value"]
    assert as_viewer("/schemas/clicks-value", READS, CONFIGS).status == 404
    assert "refunds" not in as_viewer("/schemas/orders-value", READS, CONFIGS).text
    assert "warehouse" in as_viewer("/connectors", CONFIGS).text


def test_a_reader_of_a_topic_gets_its_records_decoded_and_no_link() -> None:
    text = as_viewer("/topics/orders/records", READS).text
    assert "orders-value" in text
    assert 'href="/schemas/orders-value' not in text
    assert "&#34;id&#34;: 7" in text
