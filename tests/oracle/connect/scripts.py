"""All scripts, in the order in which they are asked: each leaves the worker as the next one expects it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.oracle.connect import creating_script, offsets_script, plugins_script, states_script
from tests.oracle.connect.dialogue import Dialogue
from tests.oracle.connect.plain import plain

SCRIPTS: Final[dict[str, Callable[[Dialogue], None]]] = {
    "plugins": plugins_script.run,
    "creating": creating_script.run,
    "states": states_script.run,
    "offsets": offsets_script.run,
}
RECORDED: Final = Path(__file__).with_name("apache_connect_4.3.1.json")
Answers = dict[str, dict[str, dict[str, Any]]]
"""Of one worker: by script and step, what was asked and the answer as plain data."""


def talk(port: int, directory: Path) -> Answers:
    answers: Answers = {}
    directory.mkdir(exist_ok=True)
    for name, run in SCRIPTS.items():
        dialogue = Dialogue(port, directory)
        run(dialogue)
        answers[name] = {
            step: {"asked": dialogue.asked[step], **plain(answer, directory)}
            for step, answer in dialogue.answers.items()
        }
    return answers


def recorded() -> Answers:
    answers: Answers = json.loads(RECORDED.read_text())
    return answers


def record(answers: Answers) -> None:
    """One line for each call, so that a change of one answer is a change of one line."""
    parts = []
    for name, steps in answers.items():
        lines = [f"  {json.dumps(step)}: {json.dumps(kept)}" for step, kept in steps.items()]
        parts.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    RECORDED.write_text("{\n" + ",\n".join(parts) + "\n}\n")
