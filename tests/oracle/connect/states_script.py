"""Connectors that are paused, stopped, restarted and deleted; topics, failures, loggers."""

from __future__ import annotations

from tests.oracle.connect.dialogue import Dialogue


def run(with_worker: Dialogue) -> None:
    _paused_and_stopped(with_worker)
    _restarted(with_worker)
    _failed(with_worker)
    _topics(with_worker)
    _loggers(with_worker)
    _ended(with_worker)


def _paused_and_stopped(with_worker: Dialogue) -> None:
    ask, until = with_worker.ask, with_worker.until_state
    ask("pause", "PUT", "/connectors/made/pause")
    until("is paused", "made", "PAUSED", "PAUSED")
    ask("pause again", "PUT", "/connectors/made/pause")
    ask("resume", "PUT", "/connectors/made/resume")
    until("is resumed", "made", "RUNNING", "RUNNING")
    ask("resume again", "PUT", "/connectors/made/resume")
    ask("stop", "PUT", "/connectors/made/stop")
    until("is stopped", "made", "STOPPED")
    ask("stopped: tasks", "GET", "/connectors/made/tasks")
    ask("stopped: info", "GET", "/connectors/made")
    ask("stop again", "PUT", "/connectors/made/stop")
    ask("pause what is stopped", "PUT", "/connectors/made/pause")
    until("paused after stopped", "made", "PAUSED")
    ask("resume after all", "PUT", "/connectors/made/resume")
    until("runs after all", "made", "RUNNING", "RUNNING")
    ask("pause by POST", "POST", "/connectors/made/pause")


def _restarted(with_worker: Dialogue) -> None:
    ask, until = with_worker.ask, with_worker.until_state
    ask("restart", "POST", "/connectors/made/restart")
    until("runs after restart", "made", "RUNNING", "RUNNING")
    ask("restart with tasks", "POST", "/connectors/made/restart?includeTasks=true")
    until("runs after restart with tasks", "made", "RUNNING", "RUNNING")
    # What is RUNNING may be what ran before the restart: this asks for nothing until all of it is over.
    with_worker.until(
        "restart what has failed",
        "POST",
        "/connectors/made/restart?includeTasks=true&onlyFailed=true",
        lambda a: a.body["connector"]["state"] == a.body["tasks"][0]["state"] == "RUNNING",
    )
    until("runs after restart of failures", "made", "RUNNING", "RUNNING")
    ask("restart: onlyFailed alone", "POST", "/connectors/made/restart?onlyFailed=true")
    ask("restart: no boolean", "POST", "/connectors/made/restart?includeTasks=perhaps")
    ask("restart a task", "POST", "/connectors/made/tasks/0/restart")
    until("runs after restart of a task", "made", "RUNNING", "RUNNING")
    ask("restart no task", "POST", "/connectors/made/tasks/7/restart")


def _failed(with_worker: Dialogue) -> None:
    """A file that is a directory cannot be read or written."""
    ask, until = with_worker.ask, with_worker.until_state
    place = str(with_worker.directory)
    ask(
        "create what fails",
        "POST",
        "/connectors",
        {"name": "fails", "config": with_worker.sink("made", place)},
    )
    until("has failed", "fails", "RUNNING", "FAILED")
    ask("failed: status of the task", "GET", "/connectors/fails/tasks/0/status")
    ask("failed: restart", "POST", "/connectors/fails/restart?includeTasks=true&onlyFailed=true")
    ask("failed: delete", "DELETE", "/connectors/fails")


def _topics(with_worker: Dialogue) -> None:
    ask = with_worker.ask
    with_worker.until(
        "topics", "GET", "/connectors/made/topics", lambda a: a.body["made"]["topics"] == ["made"]
    )
    ask("reset topics", "PUT", "/connectors/made/topics/reset")
    with_worker.until(
        "topics after the reset", "GET", "/connectors/made/topics", lambda a: a.body["made"]["topics"] == []
    )


def _loggers(with_worker: Dialogue) -> None:
    ask = with_worker.ask
    ask("root logger", "GET", "/admin/loggers/root")
    ask("unknown logger", "GET", "/admin/loggers/no.such.logger")
    ask("set a logger", "PUT", "/admin/loggers/a.logger", {"level": "DEBUG"})
    ask("the logger", "GET", "/admin/loggers/a.logger")
    ask("set a logger: small letters", "PUT", "/admin/loggers/a.logger", {"level": "warn"})
    ask("set a logger: no level", "PUT", "/admin/loggers/a.logger", {})
    ask("set a logger: unknown level", "PUT", "/admin/loggers/a.logger", {"level": "LOUD"})
    ask("set a logger: in the cluster", "PUT", "/admin/loggers/a.logger?scope=cluster", {"level": "INFO"})
    ask("set a logger: unknown scope", "PUT", "/admin/loggers/a.logger?scope=universe", {"level": "INFO"})


def _ended(with_worker: Dialogue) -> None:
    ask = with_worker.ask
    ask("delete", "DELETE", "/connectors/made")
    with_worker.until("deleted: status", "GET", "/connectors/made/status", lambda a: a.status == 404)
    ask("deleted: delete", "DELETE", "/connectors/made")
    ask("deleted: list", "GET", "/connectors")
