"""Connectors that are made, asked for and changed, and what is refused."""

from __future__ import annotations

from tests.oracle.connect.dialogue import Dialogue


def run(with_worker: Dialogue) -> None:
    _refused(with_worker)
    _made(with_worker)
    _changed(with_worker)
    _unknown(with_worker)


def _refused(with_worker: Dialogue) -> None:
    ask = with_worker.ask
    good = with_worker.source("made", with_worker.file("made.txt"))
    ask("create: not JSON", "POST", "/connectors", "{")
    ask("create: no body", "POST", "/connectors")
    ask("create: a list", "POST", "/connectors", "[]")
    ask("create: an unknown field", "POST", "/connectors", {"name": "c", "config": good, "more": 1})
    ask("create: no config", "POST", "/connectors", {"name": "c"})
    ask("create: config is a text", "POST", "/connectors", {"name": "c", "config": "x"})
    ask("create: no name", "POST", "/connectors", {"config": good})
    ask("create: empty name", "POST", "/connectors", {"name": "", "config": good})
    ask(
        "create: another name in the config",
        "POST",
        "/connectors",
        {"name": "c", "config": {**good, "name": "d"}},
    )
    ask("create: no class", "POST", "/connectors", {"name": "c", "config": {"file": "x"}})
    unknown = {**good, "connector.class": "NoSuchThing"}
    ask("create: unknown class", "POST", "/connectors", {"name": "c", "config": unknown})
    without = {name: value for name, value in good.items() if name != "topic"}
    ask("create: a required setting is missing", "POST", "/connectors", {"name": "c", "config": without})
    two = {**without, "tasks.max": "0"}
    ask("create: two errors", "POST", "/connectors", {"name": "c", "config": two})
    strange = {"name": "c", "config": good, "initial_state": "ASLEEP"}
    ask("create: unknown initial_state", "POST", "/connectors", strange)
    ask("none was made", "GET", "/connectors")
    ask("wrong method", "PATCH", "/connectors", {})
    ask("no such path", "GET", "/no/such/path")


def _made(with_worker: Dialogue) -> None:
    ask = with_worker.ask
    file = with_worker.file("made.txt", "one", "two", "three")
    config = with_worker.source("made", file)
    ask("create", "POST", "/connectors", {"name": "made", "config": config})
    with_worker.until_state("made: runs", "made", "RUNNING", "RUNNING")
    ask("create: again", "POST", "/connectors", {"name": "made", "config": config})
    ask("made: info", "GET", "/connectors/made")
    ask("made: config", "GET", "/connectors/made/config")
    ask("made: tasks", "GET", "/connectors/made/tasks")
    ask("made: tasks-config", "GET", "/connectors/made/tasks-config")
    ask("made: status of a task", "GET", "/connectors/made/tasks/0/status")
    ask("made: status of no task", "GET", "/connectors/made/tasks/7/status")
    ask("made: status of no number", "GET", "/connectors/made/tasks/x/status")
    for state in ("STOPPED", "PAUSED", "RUNNING"):
        name = state.lower()
        body = {"name": name, "config": with_worker.source(name, file), "initial_state": state}
        ask(f"create {state}", "POST", "/connectors", body)
        tasks = [state] if state == "RUNNING" else []
        with_worker.until_state(f"status of {state}", name, state, *tasks)
    lower = {"name": "lower", "config": with_worker.source("lower", file), "initial_state": "stopped"}
    ask("create: initial_state in small letters", "POST", "/connectors", lower)
    ask("list", "GET", "/connectors")
    with_worker.until(
        "list expanded", "GET", "/connectors?expand=info&expand=status", lambda a: len(a.body) >= 4
    )
    ask("list with info", "GET", "/connectors?expand=info")
    ask("list with something unknown", "GET", "/connectors?expand=nothing")
    for name in ("stopped", "paused", "running", "lower"):
        ask(f"delete {name}", "DELETE", f"/connectors/{name}")


def _changed(with_worker: Dialogue) -> None:
    ask = with_worker.ask
    file = with_worker.file("made.txt")
    config = with_worker.source("made", file)
    ask("put the same config", "PUT", "/connectors/made/config", config)
    ask("put another config", "PUT", "/connectors/made/config", {**config, "batch.size": "500"})
    with_worker.until(
        "tasks have it", "GET", "/connectors/made/tasks", lambda a: a.body[0]["config"]["batch.size"] == "500"
    )
    ask(
        "put a config that makes a connector",
        "PUT",
        "/connectors/put/config",
        with_worker.source("put", file),
    )
    ask("put a wrong config", "PUT", "/connectors/made/config", {**config, "tasks.max": "0"})
    ask("put without a class", "PUT", "/connectors/made/config", {"file": file})
    ask("put another name", "PUT", "/connectors/made/config", {**config, "name": "other"})
    ask("put a list", "PUT", "/connectors/made/config", "[]")
    ask("put nothing", "PUT", "/connectors/made/config")
    ask("patch one setting", "PATCH", "/connectors/made/config", {"batch.size": "700"})
    ask("patch with null", "PATCH", "/connectors/made/config", {"batch.size": None})
    ask("patch what is wrong", "PATCH", "/connectors/made/config", {"tasks.max": "0"})
    ask("patch with a list", "PATCH", "/connectors/made/config", "[]")
    ask("patched", "GET", "/connectors/made/config")
    ask("patch nobody", "PATCH", "/connectors/nobody/config", {"a": "b"})
    ask("delete put", "DELETE", "/connectors/put")


def _unknown(with_worker: Dialogue) -> None:
    ask = with_worker.ask
    with_worker.until("nobody", "GET", "/connectors/nobody", lambda a: a.status == 404)
    for path in (
        "/config",
        "/status",
        "/tasks",
        "/tasks-config",
        "/tasks/0/status",
        "/topics",
        "/offsets",
    ):
        ask(f"nobody{path}", "GET", f"/connectors/nobody{path}")
    for verb in ("pause", "resume", "stop"):
        ask(f"{verb} nobody", "PUT", f"/connectors/nobody/{verb}")
    ask("restart nobody", "POST", "/connectors/nobody/restart")
    ask("restart a task of nobody", "POST", "/connectors/nobody/tasks/0/restart")
    ask("reset topics of nobody", "PUT", "/connectors/nobody/topics/reset")
    ask("delete nobody", "DELETE", "/connectors/nobody")
    ask("alter offsets of nobody", "PATCH", "/connectors/nobody/offsets", {"offsets": []})
    ask("reset offsets of nobody", "DELETE", "/connectors/nobody/offsets")
