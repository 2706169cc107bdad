"""Every page of every cluster: empty, small, huge, broken. What it says is what the snapshot says."""

from __future__ import annotations

import re
import shlex
from html import unescape
from html.parser import HTMLParser
from typing import Final
from urllib.parse import quote

import pytest
from starlette.types import ASGIApp

from headrace.client.cluster import Cluster
from headrace.client.errors import Unreachable
from headrace.client.group_offsets import Committed
from headrace.client.reassignments import Reassignment
from headrace.console.http.app import application
from headrace.console.http.records import Source
from headrace.console.http.shield import POLICY
from headrace.console.pages.page import PER_PAGE
from headrace.core.ids import TopicPartition
from headrace.doctor.model import Unknown
from headrace.observe.ends import AllEnds, Ends
from headrace.observe.history import History
from headrace.observe.poller import Failing
from tests.console.serving import CLUSTERS, Still
from tests.unit.console.asking import Answered, ask
from tests.unit.observe.made_up import committed, group, small_look, snapshot_of

PAGES: Final = {
    "empty": ("/", "/topics", "/topics?internal=1", "/groups", "/brokers", "/audit", "/pipeline", "/tier"),
    "small": (
        "/",
        "/topics?sort=-size&q=o*",
        "/topics/orders",
        "/groups?sort=name",
        "/groups/reports",
        "/brokers",
        "/audit",
        "/audit/orders",
        "/pipeline",
        "/tier",
    ),
    "tiered": ("/tier?sort=-bucket", "/tier/orders", "/tier/young", "/topics/orders"),
    "outage": ("/tier", "/tier/orders", "/topics/orders"),
    "huge": (
        "/",
        "/topics?page=7",
        "/topics/team-00.stream-00000",
        "/groups",
        "/groups/readers-0000",
        "/brokers",
    ),
    "broken": (
        "/",
        "/topics",
        "/topics/orders",
        "/topics/lost",
        "/groups",
        "/groups/billing",
        "/brokers",
        "/audit",
    ),
}
EVERY: Final = [(name, path) for name, paths in PAGES.items() for path in paths]
VOID: Final = {"meta", "link", "input", "br", "hr", "img"}
BUILT: dict[str, ASGIApp] = {}


def nobody() -> Cluster:
    raise Unreachable("127.0.0.1", 1)


def app_of(name: str) -> ASGIApp:
    if name not in BUILT:
        BUILT[name] = application(CLUSTERS[name](), Source(nobody))
    return BUILT[name]


class Balanced(HTMLParser):
    """Elements that are open; what breaks the policy is collected."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.faults: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        if tag not in VOID:
            self.open.append(tag)
        self.faults += [name for name in given if name == "style" or name.startswith("on")]
        if tag == "script" and not (given.get("src") or "").startswith("/static/"):
            self.faults.append("script")
        for name in ("href", "src", "action"):
            value = given.get(name)
            if value and not value.startswith(("/", "#")):
                self.faults.append(f"{name}={value}")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}>")


def checked(answered: Answered) -> str:
    parser = Balanced()
    parser.feed(answered.text)
    assert parser.open == []
    assert parser.faults == []
    assert len(parser.ids) == len(set(parser.ids))
    return answered.text


def words(text: str) -> str:
    """What a person reads, in one line."""
    inside = text[text.index("<main") : text.index("</main>")]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", inside))


@pytest.mark.parametrize(("name", "path"), EVERY)
def test_each_page_is_whole_and_keeps_to_the_policy(name: str, path: str) -> None:
    answered = ask(app_of(name), path)
    assert answered.status == 200
    assert answered.headers["content-security-policy"] == POLICY
    assert answered.headers["x-content-type-options"] == "nosniff"
    text = checked(answered)
    assert "<h1>" in text
    assert "<script>alert(1)" not in text


@pytest.mark.parametrize(("name", "path"), EVERY)
def test_each_page_is_json_too(name: str, path: str) -> None:
    both = (
        ask(app_of(name), path, accept="application/json"),
        ask(app_of(name), f"{path}{'&' if '?' in path else '?'}format=json"),
    )
    for answered in both:
        assert answered.headers["content-type"] == "application/json"
        assert answered.json["look"] == 2


def test_now_says_how_the_cluster_is_and_what_to_do() -> None:
    well = words(ask(app_of("small"), "/").text)
    assert "All is well." in well
    assert "Coming in 100/s" in well
    assert "Brokers 3 of 3" in well
    assert "group reports has records to read, and no members" in well
    broken = words(ask(app_of("broken"), "/").text)
    assert "Partitions are offline." in broken
    assert "start the brokers that hold its replicas; headrace topic describe NAME names them" in broken


def test_what_nobody_knows_is_not_said() -> None:
    now = words(ask(app_of("broken"), "/").text)
    assert "Furthest behind – not known of every group" in now
    assert "by no group" not in now
    assert "not audited" not in now
    groups = words(ask(app_of("broken"), "/groups").text)
    assert "All groups have read everything" not in groups
    assert "How far 1 group is behind is not known." in groups
    topic = words(ask(app_of("broken"), "/topics/orders").text)
    assert "No group has committed" not in topic
    assert "Groups cannot be asked now." in topic
    lost = ask(app_of("broken"), "/topics/lost?format=json").json
    assert lost["records"] is None
    assert lost["size_bytes"] is None
    assert "The verdicts cannot be read now." in words(ask(app_of("broken"), "/audit").text)


def test_an_empty_cluster_says_how_to_begin() -> None:
    assert "echo hello | headrace produce greetings" in words(ask(app_of("empty"), "/").text)
    assert "No group yet." in words(ask(app_of("empty"), "/groups").text)
    assert "Nothing is audited yet." in words(ask(app_of("empty"), "/audit").text)


def test_a_list_of_ten_thousand_is_shown_in_pages() -> None:
    listing = ask(app_of("huge"), "/topics?format=json").json["listing"]
    assert (listing["found"], listing["pages"], len(listing["rows"])) == (10_000, 100, PER_PAGE)
    last = ask(app_of("huge"), "/topics?format=json&page=99999&sort=-name").json["listing"]
    assert (last["number"], last["rows"][-1]["name"]) == (100, "team-00.stream-00000")
    found = ask(app_of("huge"), "/topics?format=json&q=team-07.*").json
    assert found["listing"]["found"] == 250
    assert {"text": "team-07.", "topics": 250} in found["prefixes"] or len(found["prefixes"]) == 12
    assert ask(app_of("huge"), "/groups?format=json").json["listing"]["found"] == 2000


def test_what_is_not_known_is_sorted_last_whichever_way() -> None:
    for sort in ("size", "-size"):
        rows = ask(app_of("broken"), f"/topics?format=json&sort={sort}").json["listing"]["rows"]
        assert [row["size_bytes"] is None for row in rows] == [False, True, True]


@pytest.mark.parametrize(
    "path", ["/topics/nope", "/groups/nope", "/audit/nope", "/nope", "/static/nope", "/topics/a/b"]
)
def test_what_is_not_there(path: str) -> None:
    answered = ask(app_of("small"), path)
    assert answered.status == 404
    assert "Not there" in words(checked(answered))


def test_a_window_of_the_audit() -> None:
    text = words(ask(app_of("small"), "/audit/orders").text)
    assert "partition 0: lake: 3 lost (lake has 3597, log 3600)" in text
    audit = ask(app_of("small"), "/audit?format=json").json
    assert audit["counts"] == {"certified": 475, "different": 1, "incomplete": 0, "open": 4}
    row = next(row for row in audit["listing"]["rows"] if row["topic"] == "orders")
    assert [hour["state"] for hour in row["hours"] if hour["state"]][-1] == "different"


def test_a_command_that_is_copied_does_what_it_says_whatever_a_group_is_called() -> None:
    name = "x; touch /tmp/taken; $(id)"
    made = small_look(1)
    orders = [TopicPartition("orders", 0)]
    made = made._replace(groups={name: group(name)}, committed={name: committed(dict.fromkeys(orders, 4))})
    watch = CLUSTERS["small"]()
    watch.snapshot = snapshot_of(made)
    answered = checked(ask(application(watch, Source(nobody)), f"/groups/{quote(name, safe='')}"))
    (command,) = re.findall(r"<pre>(headrace group reset .*)</pre>", answered)
    assert shlex.split(unescape(command)) == ["headrace", "group", "reset", name, "--to-earliest"]


def test_moves_before_and_after() -> None:
    made = small_look(1)
    assert not isinstance(made.health, Unknown)
    one, two = TopicPartition("empty", 0), TopicPartition("clicks", 0)
    health = made.health._replace(
        moving={one: Reassignment([3, 1, 2], [1, 2], [3]), two: Reassignment([2, 3, 1], [], [1])},
        lagging={(one, 1): 40, (one, 2): None},
    )
    seen = snapshot_of(small_look(0), made._replace(health=health))
    watch = CLUSTERS["small"]()
    watch.snapshot = seen
    app = application(watch, Source(nobody))
    rows = {row["partition"]["topic"]: row for row in ask(app, "/moves?format=json").json["rows"]}
    assert (rows["empty"]["before"], rows["empty"]["after"]) == ([3], [1, 2])
    assert [each["lag"] for each in rows["empty"]["arriving"]] == [40, None]
    assert (rows["clicks"]["after"], rows["clicks"]["arriving"]) == ([2, 3], [])
    text = words(checked(ask(app, "/moves")))
    assert "2 partitions are being moved; 0 of 2 new copies are in sync." in text
    assert "broker 1 40 records behind" in text
    assert "broker 2 not known" in text
    assert "Nothing is being moved." in words(ask(app_of("small"), "/moves").text)


def test_who_waits_for_an_open_transaction() -> None:
    made = small_look(1)
    assert not isinstance(made.committed, Unknown)
    place = TopicPartition("orders", 2)
    ends = {**made.all_ends.ends, place: Ends(0, 1040, 1050)}
    offsets = {**made.committed["billing"], place: Committed(1040, 3, "", False)}
    seen = snapshot_of(
        small_look(0),
        made._replace(
            all_ends=AllEnds(ends, {}),
            committed={**made.committed, "billing": offsets},
        ),
    )
    watch = CLUSTERS["small"]()
    watch.snapshot = seen
    app = application(watch, Source(nobody))
    view = ask(app, "/transactions?format=json").json
    assert [(row["stable"], row["end"], row["waiting"]) for row in view["rows"]] == [
        (1040, 1050, ["billing"])
    ]
    assert "orders 2 1,040 1,050 10 billing" in words(checked(ask(app, "/transactions")))
    assert "No open transaction holds anybody." in words(ask(app_of("small"), "/transactions").text)
    broken = words(checked(ask(app_of("broken"), "/transactions")))
    assert "2 partitions could not be asked." in broken
    assert "No open transaction" not in broken


def test_an_answer_that_has_not_changed_is_not_sent_again() -> None:
    first = ask(app_of("small"), "/topics")
    again = ask(app_of("small"), "/topics", if_none_match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")


def test_before_the_first_look() -> None:
    watch = Still.__new__(Still)
    watch.snapshot, watch.history, watch.failing = None, History(), None
    app = application(watch, Source(nobody))
    assert "Looking for the first time" in words(ask(app, "/").text)
    assert ask(app, "/").status == 503
    watch.failing = Failing(0, "nothing listens at 127.0.0.1:9092")
    assert "nothing listens at 127.0.0.1:9092" in words(ask(app, "/topics").text)


def test_a_cluster_that_has_gone_silent_is_told_as_of_when() -> None:
    watch = CLUSTERS["small"]()
    watch.failing = Failing(0, "nothing listens at 127.0.0.1:9092")
    text = ask(application(watch, Source(nobody)), "/").text
    assert "No broker answers." in text
    assert "What you see is of 2025-10-09 08:53:25 UTC" in text


def test_a_look_that_does_not_end_is_told_too() -> None:
    watch = CLUSTERS["small"]()
    watch.failing = Failing(0, "A look at the cluster has waited.", "Brokers have not answered yet")
    text = checked(ask(application(watch, Source(nobody)), "/"))
    assert "<strong>Brokers have not answered yet.</strong>" in text
    assert "No broker answers" not in text
    assert re.findall(r'class="pill[^>]*>.*?</span>([^<]*)<', text) == ["Not known now"]


def test_records_need_a_broker() -> None:
    answered = ask(app_of("small"), "/topics/orders/records")
    assert answered.status == 502
    assert "nothing listens at 127.0.0.1:1" in words(checked(answered))
    hidden = application(CLUSTERS["small"](), Source(nobody, shows_records=False))
    assert "started with --no-records" in words(ask(hidden, "/topics/orders/records").text)
    assert ask(hidden, "/topics/orders/records/0/0").status == 404
