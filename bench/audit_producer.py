"""What auditing costs a producer: CPU time with and without it, at a steady rate and at full speed.

    python -m bench.audit_producer --output bench/results/audit-producer.json

Each run is a process of its own that sends to a broker, and reads its own CPU time: all its threads, the
client's too. Runs of the kinds alternate. `checked` is an application that gives a delivery callback of its
own, as one must to know whether its records were stored; `audited` does that by itself.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any, Final

from tests.broker_process import HeadraceProcess

CLIENTS: Final = ("confluent-kafka", "kafka-python")
KINDS: Final = ("bare", "checked", "audited", "audited-checked")
TOPIC: Final = "bench"
_PAUSE_S: Final = 0.01


def _confluent(bootstrap: str, kind: str) -> tuple[Any, Any, Any]:
    """(send, serve, finish)."""
    from confluent_kafka import Producer

    from headrace.audit.confluent import audited

    made = audited(Producer) if kind.startswith("audited") else Producer
    producer = made(
        {"bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000}
    )
    delivered = []

    def on_delivery(error: Any, _: Any) -> None:
        if error is not None:
            delivered.append(error)

    more: dict[str, Any] = {"on_delivery": on_delivery} if kind.endswith("checked") else {}

    def send(key: bytes, value: bytes) -> None:
        while True:
            try:
                producer.produce(TOPIC, value, key, **more)
                return
            except BufferError:
                producer.poll(0.01)

    return send, lambda: producer.poll(0), producer.flush


def _kafka_python(bootstrap: str, kind: str) -> tuple[Any, Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from kafka import KafkaProducer

        from headrace.audit.kafka_python import audited

    made = audited(KafkaProducer) if kind.startswith("audited") else KafkaProducer
    producer = made(bootstrap_servers=bootstrap, linger_ms=5)
    checked = kind.endswith("checked")

    def send(key: bytes, value: bytes) -> None:
        future = producer.send(TOPIC, value, key)
        if checked:
            future.add_errback(print)

    return send, lambda: None, producer.flush


def child(plan: dict[str, Any]) -> dict[str, float]:
    """One run in this process."""
    make = _confluent if plan["client"] == CLIENTS[0] else _kafka_python
    send, serve, finish = make(plan["bootstrap"], plan["kind"])
    key, value = b"key-%06d", b"v" * plan["bytes"]
    for number in range(1_000):  # connections and first looks at metadata are not what is measured
        send(key % number, value)
    finish()
    rate, records = plan["rate"], plan["records"]
    began, cpu = time.perf_counter(), time.process_time()
    sent = 0
    while sent < records:
        due = records if not rate else min(records, int((time.perf_counter() - began) * rate))
        while sent < due:
            send(key % sent, value)
            sent += 1
            if sent % 100 == 0:
                serve()
        serve()
        if rate:
            time.sleep(_PAUSE_S)
    finish()
    return {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - began, "records": records}


def _run(plan: dict[str, Any]) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.audit_producer", "--child", json.dumps(plan)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    found: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return found


def measure(
    clients: list[str], rounds: int, seconds: float, rate: int, full: int, sizes: list[int]
) -> list[dict[str, Any]]:
    rows = []
    with (
        tempfile.TemporaryDirectory() as directory,
        HeadraceProcess(Path(directory), {"num.partitions": "3"}) as broker,
    ):
        for client in clients:
            for size in sizes:
                for speed, records in ((rate, round(rate * seconds)), (0, full)):
                    # kafka-python does not reach as much.
                    count = records if speed or client == CLIENTS[0] else records // 4
                    plan = {
                        "bootstrap": broker.bootstrap,
                        "client": client,
                        "bytes": size,
                        "rate": speed,
                        "records": count,
                    }
                    runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
                    for _ in range(rounds):
                        for kind in KINDS:
                            runs[kind].append(_run({**plan, "kind": kind}))
                    rows += [_row(client, size, speed, kind, runs) for kind in KINDS]
                    for row in rows[-len(KINDS) :]:
                        print(_line(row), flush=True)
    return rows


def _row(
    client: str, size: int, rate: int, kind: str, runs: dict[str, list[dict[str, float]]]
) -> dict[str, Any]:
    def per_record(name: str) -> list[float]:
        return [1e6 * run["cpu_s"] / run["records"] for run in runs[name]]

    own, bare = median(per_record(kind)), median(per_record("bare"))
    return {
        "client": client,
        "bytes": size,
        "rate": rate or "full",
        "kind": kind,
        "cpu_us": round(own, 2),
        "spread_us": [round(min(per_record(kind)), 2), round(max(per_record(kind)), 2)],
        "records_per_s": round(median(run["records"] / run["wall_s"] for run in runs[kind])),
        "added_us": round(own - bare, 2),
        "added_percent_of_a_core": round((own - bare) * rate / 1e4, 2) if rate else None,
        "added_percent_of_its_own": round(100 * (own - bare) / bare, 1),
    }


def _line(row: dict[str, Any]) -> str:
    core = row["added_percent_of_a_core"]
    return (
        f"{row['client']:<16} {row['bytes']:>5} B {row['rate']!s:>6}/s {row['kind']:<16} "
        f"{row['cpu_us']:>7} us "
        f"{row['spread_us']!s:<18} {row['records_per_s']:>8,}/s  +{row['added_us']} us"
        + ("" if core is None else f" = {core}% of a core")
        + f", {row['added_percent_of_its_own']}% of its own"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--full", type=int, default=400_000, help="records of a run at full speed")
    parser.add_argument("--bytes", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--client", nargs="+", choices=CLIENTS, default=list(CLIENTS))
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args()
    if chosen.child:
        print(json.dumps(child(json.loads(chosen.child))))
        return
    rows = measure(chosen.client, chosen.rounds, chosen.seconds, chosen.rate, chosen.full, chosen.bytes)
    if chosen.output:
        chosen.output.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
