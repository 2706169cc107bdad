"""One Connect worker answering the script: every answer is kept under the name of its step."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.apache_connect import Answer, call

SECONDS = 180.0
Config = dict[str, str]


class Dialogue:
    """Asks a worker. `directory` is where its connectors find and leave their files."""

    def __init__(self, port: int, directory: Path) -> None:
        self.port = port
        self.directory = directory
        self.answers: dict[str, Answer] = {}
        self.asked: dict[str, str] = {}

    def ask(self, step: str, method: str, path: str, body: object = None) -> Answer:
        """Ask once and keep the answer."""
        assert step not in self.answers, step
        self.asked[step] = f"{method} {path}"
        self.answers[step] = answer = call(self.port, method, path, body)
        return answer

    def until(
        self,
        step: str,
        method: str,
        path: str,
        wanted: Callable[[Any], bool],
        body: object = None,
    ) -> Answer:
        """Ask until the answer is what a worker says when it is done. Keep the last one, also a wrong one."""
        assert step not in self.answers, step
        self.asked[step] = f"{method} {path}"
        deadline = time.monotonic() + SECONDS
        while True:
            self.answers[step] = answer = call(self.port, method, path, body)
            try:
                if wanted(answer):
                    return answer
            except (KeyError, IndexError, TypeError):
                pass  # An error's body instead of the expected one.
            if time.monotonic() > deadline:
                return answer
            time.sleep(0.1)

    def until_state(self, step: str, name: str, connector: str, *tasks: str) -> Answer:
        def there(answer: Answer) -> bool:
            body = answer.body
            return bool(
                body["connector"]["state"] == connector
                and [task["state"] for task in body["tasks"]] == list(tasks)
            )

        return self.until(step, "GET", f"/connectors/{name}/status", there)

    def file(self, name: str, *lines: str) -> str:
        """A file with lines added to its end."""
        path = self.directory / name
        with path.open("a") as output:
            output.writelines(f"{line}\n" for line in lines)
        return str(path)

    def source(self, topic: str, file: str, **more: str) -> Config:
        return {
            "connector.class": "FileStreamSource",
            "tasks.max": "1",
            "file": file,
            "topic": topic,
            **{name.replace("_", "."): value for name, value in more.items()},
        }

    def sink(self, topics: str, file: str, **more: str) -> Config:
        return {
            "connector.class": "FileStreamSink",
            "tasks.max": "1",
            "file": file,
            "topics": topics,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
