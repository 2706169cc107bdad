"""What the driver of a job is told when it is started: the same every time, except whether it is to end."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Orders:
    master: str
    settings: dict[str, str]
    """Of the session."""
    bootstrap: str
    directory: str
    """The round's own: checkpoints and tables go below it, and stay when the driver is killed."""
    source: str
    target: str
    """A topic, or the name of a table."""
    batch_records: int
    options: dict[str, str] = field(default_factory=dict)
    """Of the job."""
    finish: bool = False
    """Take what is there, and end; otherwise go on until you are killed."""

    @property
    def path(self) -> Path:
        return Path(self.directory)

    @property
    def checkpoint(self) -> str:
        return str(self.path / "checkpoint")

    @property
    def tables(self) -> Path:
        """Where a job that writes tables has them."""
        return self.path / "lake"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Orders:
        return cls(**json.loads(text))
