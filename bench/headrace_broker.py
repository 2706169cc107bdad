"""Headrace as a process: the installed command, with Kafka's property names."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Headrace:
    """The `headrace` command beside this Python, or the one that HEADRACE_COMMAND names."""

    name: str = "Headrace"
    command: Path = Path(os.environ.get("HEADRACE_COMMAND", Path(sys.executable).parent / "headrace"))

    def install(self, directory: Path, port: int) -> list[str]:
        properties = {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(directory / "logs"),
            "auto.create.topics.enable": "false",
        }
        config = directory / "server.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        return [str(self.command), "broker", "--config", str(config)]
