"""The pictures of the console in the documents: a cluster of three brokers with producers and groups, and its
pages in a real chromium.

    uv run --group browser python -m tests.console.screenshots              # all of them
    uv run --group browser python -m tests.console.screenshots tier topic   # some, by their names

This module writes the verdicts of the audit, as `headrace audit run` does: that job needs Spark.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from playwright.sync_api import Browser, sync_playwright

from headrace.audit.tally import Tally
from headrace.audit.verdict import DEFAULT_TOPIC, Difference, Kind, State, Verdict
from headrace.audit.verdict_topic import publish
from headrace.client.cluster import Cluster as Client
from headrace.client.errors import ClientFailure
from headrace.client.rest import Rest
from headrace.observe.poller import INTERVAL_SECONDS
from headrace.testing.cluster import Cluster
from tests.cluster.tiered_store import ENVIRONMENT, broker_properties
from tests.console.chromium import launched
from tests.directories.object_store import ObjectStore, running_object_store
from tests.registry.idle_worker import idle_worker
from tests.registry.registry_process import RegistryProcess

FOLDER: Final = Path(__file__).parents[2] / "docs/img/console"
SECONDS: Final = 150.0
RATES: Final = {
    "orders": 120,
    "payments": 80,
    "clicks": 300,
    "shipments": 25,
    "eu.returns": 5,
    "eu.invoices": 12,
}
WIDTH: Final = 1200
PAGES: Final = {
    "now": "/",
    "topics": "/topics?sort=-in",
    "topic": "/topics/orders",
    "records": "/topics/orders/records",
    "groups": "/groups",
    "group": "/groups/reports",
    "brokers": "/brokers",
    "moves": "/moves",
    "tier": "/tier",
    "transactions": "/transactions",
    "audit": "/audit",
    "windows": "/audit/payments",
    "pipeline": "/pipeline",
    "schemas": "/schemas",
    "subject": "/schemas/orders-value?version=2&against=1",
    "connectors": "/connectors",
    "connector": "/connectors/warehouse",
    "live": "/topics/orders/records?live=1",
    "produce": "/topics/orders/produce",
    "replay": "/topics/orders/replay/plan?records=0:5-9,1:3&to=eu.returns&where=key",
}
ORDER: Final = [{"name": "id", "type": "long"}, {"name": "amount", "type": "double"}]
DARK: Final = ("now", "topic", "tier")
NARROW: Final = ("now", "tier")
QUICK: Final = frozenset(("brokers", "moves", "tier", "transactions"))
"""Pages that show nothing of services, verdicts and hours: alone they need no registry and no worker."""
QUICK_SECONDS: Final = 30.0


TIERED: Final = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "40000",
    "local.retention.bytes": "120000",
}
IN_THE_BUCKET: Final = ("orders", "payments", "clicks")
FORK: Final = "orders-test"
PAST: Final = 30_000
"""Records that each topic of these has before the rest begins."""


def main(names: Sequence[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.environ.update(ENVIRONMENT)
    with running_object_store() as store, Cluster(with_bucket(store), brokers=3) as cluster:
        prepare(cluster.bootstrap)
        over = threading.Event()
        threads = [threading.Thread(target=produce, args=(cluster.bootstrap, over))]
        for group, share in (
            ("billing", 1.0),
            ("fraud-checks", 1.0),
            ("connect-warehouse", 0.9),
            ("reports", 0.2),
        ):
            threads.append(threading.Thread(target=read, args=(cluster.bootstrap, group, share, over)))
        for thread in threads:
            thread.start()
        needs_more = not names or not QUICK.issuperset(names)
        try:
            with (
                services(cluster.bootstrap) if needs_more else nullcontext(()) as options,
                console(cluster.bootstrap, *options) as url,
            ):
                time.sleep(SECONDS if needs_more else QUICK_SECONDS)
                fork(cluster.bootstrap)
                if needs_more:
                    asyncio.run(certify(cluster.bootstrap))
                    wait_for_verdicts(url)
                take(url, names or list(PAGES))
        finally:
            over.set()
            for thread in threads:
                thread.join()


def prepare(bootstrap: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(name, 6, 3, config=TIERED if name in IN_THE_BUCKET else {}) for name in RATES]
    for made in client.create_topics(topics).values():
        made.result(60)
    producer, chance = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20}), random.Random(3)
    for number in range(PAST):
        for topic in IN_THE_BUCKET:
            producer.produce(topic, record(number, chance), f"customer-{chance.randrange(400)}")
        producer.poll(0)
    assert producer.flush(60) == 0


def with_bucket(store: ObjectStore) -> dict[str, str]:
    """Copying is slowed down, so that something is on its way."""
    return {**broker_properties(store), "remote.log.manager.copy.max.bytes.per.second": "60000"}


def fork(bootstrap: str) -> None:
    command = ["topic", "fork", "orders", FORK, "--bootstrap", bootstrap]
    subprocess.run([sys.executable, "-m", "headrace", *command], check=True)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(600):
        producer.produce(FORK, record(number, random.Random(number)))
    assert producer.flush(60) == 0
    time.sleep(3 * INTERVAL_SECONDS)


def produce(bootstrap: str, over: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    chance = random.Random(7)
    number = 0
    while not over.wait(0.1):
        for topic, rate in RATES.items():
            for _ in range(rate // 10 + (chance.random() < rate % 10 / 10)):
                number += 1
                producer.produce(topic, record(number, chance), f"customer-{chance.randrange(400)}")
        producer.poll(0)
    producer.flush(60)


def record(number: int, chance: random.Random) -> bytes:
    document = {
        "id": number,
        "amount": round(chance.lognormvariate(3, 1), 2),
        "currency": chance.choice(["EUR", "EUR", "SEK", "USD"]),
        "items": [{"sku": f"A{chance.randrange(90)}", "pieces": chance.randrange(1, 4)}],
    }
    return json.dumps(document).encode()


def read(bootstrap: str, group: str, share: float, over: threading.Event) -> None:
    """A group that keeps up, or takes only a share of what comes."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "client.id": f"{group}-1",
        }
    )
    consumer.subscribe(["orders", "payments"] if group != "fraud-checks" else ["payments", "clicks"])
    while not over.is_set():
        consumer.consume(200, 0.5)
        if share < 1:
            over.wait(0.4 / share)
    consumer.close()


async def certify(bootstrap: str) -> None:
    minute = 60_000
    now = time.time_ns() // 1_000_000 // minute * minute
    verdicts = []
    for topic in ("orders", "payments", "clicks"):
        for back in range(20 * 60, 0, -1):
            count = RATES[topic] * 60
            state = State.OPEN if back <= 2 else State.CERTIFIED
            lake = count
            differences: tuple[Difference, ...] = ()
            reasons: tuple[str, ...] = ()
            if topic == "payments" and back == 95:
                state, lake = State.DIFFERENT, count - 3
                differences = (Difference("lake", "log", 2, Kind.LOST, lake, count),)
            if state is State.OPEN:
                reasons = ("the lake has not loaded it yet",)
            tiers = {"producers": Tally(count, 1), "log": Tally(count, 1), "lake": Tally(lake, 1)}
            begin = now - back * minute
            verdicts.append(
                Verdict(topic, begin, minute, state, tiers, differences, reasons, begin + 2 * minute, 1)
            )
    await publish(Client(bootstrap), DEFAULT_TOPIC, verdicts)


@contextmanager
def services(bootstrap: str) -> Iterator[Sequence[str]]:
    """A registry with a subject that has grown, and a worker whose connectors do nothing: the options that
    show them."""
    with (
        tempfile.TemporaryDirectory() as directory,
        RegistryProcess(Path(directory), bootstrap) as registry,
        idle_worker(bootstrap) as worker,
    ):
        told = Rest(registry.url)
        for fields in (ORDER, [*ORDER, {"name": "currency", "type": "string", "default": "EUR"}]):
            schema = json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": fields})
            told.ask("POST", "/subjects/orders-value/versions", {"schema": schema})
            told.ask("POST", "/subjects/payments-value/versions", {"schema": schema})
        told.ask("PUT", "/config/orders-value", {"compatibility": "FULL"})
        asked = Rest(worker)
        until_ready(asked)
        for name, kind, more in (
            (
                "warehouse",
                "TankSink",
                {"topics": "orders", "db.password": "${file:/run/secrets/db:password}"},
            ),
            ("shop-orders", "WellSource", {"topic": "orders"}),
            ("invoices", "WellSource", {"topic": "eu.invoices"}),
        ):
            asked.ask("PUT", f"/connectors/{name}/config", {"connector.class": kind, **more})
        asked.ask("PUT", "/connectors/invoices/pause")
        yield "--registry", registry.url, "--connect", worker


def until_ready(worker: Rest) -> None:
    while True:
        try:
            worker.get("/health")
        except ClientFailure:
            time.sleep(0.2)
        else:
            return


@contextmanager
def console(bootstrap: str, *options: str) -> Iterator[str]:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "headrace", "console", "-b", bootstrap),
            "--port",
            "0",
            "--allow-changes",
            *options,
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip().removeprefix("ready url=")
    finally:
        process.terminate()
        process.wait()


def wait_for_verdicts(url: str) -> None:
    while True:
        with urllib.request.urlopen(f"{url}/audit?format=json") as answer:
            if json.load(answer)["listing"]["whole"] == 3:
                return
        time.sleep(1)


def take(url: str, names: Sequence[str]) -> None:
    with sync_playwright() as playwright:
        browser = launched(playwright)
        for name in names:
            path = PAGES[name]
            shoot(browser, url + path, f"{name}-light", WIDTH, dark=False)
            if name in DARK:
                shoot(browser, url + path, f"{name}-dark", WIDTH, dark=True)
            if name in NARROW:
                shoot(browser, url + path, f"{name}-narrow", 320, dark=False)
        browser.close()


def shoot(browser: Browser, address: str, name: str, width: int, *, dark: bool) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 640}, color_scheme="dark" if dark else "light"
    )
    page = context.new_page()
    page.goto(address)
    if "live=1" in address:
        page.wait_for_function("() => document.querySelector('.counted').textContent !== ''")
    height = min(page.evaluate("document.documentElement.scrollHeight"), 1100 if width > 400 else 1700)
    page.set_viewport_size({"width": width, "height": height})
    page.screenshot(path=FOLDER / f"{name}.png")
    context.close()


if __name__ == "__main__":
    main(sys.argv[1:])
