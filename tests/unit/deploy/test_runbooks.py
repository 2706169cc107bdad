"""A runbook has every alert, commands that exist, and links that lead somewhere: it is read at night."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

import click
import pytest
import yaml

from headrace.cli.main import cli

_ROOT: Final = Path(__file__).parents[3]
_DOCS: Final = _ROOT / "docs"
_PAGES: Final = ("runbooks.md", "deployment.md")
_RULES: Final = _ROOT / "deploy/prometheus/headrace.rules.yml"


def _commands(text: str) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    inline = re.findall(r"`(headrace [^`]+)`", text)
    return [line.strip() for line in (*lines, *inline) if line.strip().startswith("headrace ")]


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def wrong_with(line: str) -> str | None:
    """None for a command with options that it has, and as many arguments as it takes."""
    command: click.Command = cli
    words = shlex.split(line, comments=True)[1:]
    context = click.Context(cli, info_name="headrace")
    while isinstance(command, click.Group) and words:
        found = command.get_command(context, words[0])
        if found is None:
            return f"{line}: no command {words[0]}"
        command, context = found, click.Context(found, parent=context, info_name=words.pop(0))
    try:
        # Not what a callback or a file would say: whether the words can be read.
        rest = command.make_parser(context).parse_args(list(words))[1]
    except click.UsageError as error:
        return f"{line}: {error.message}"
    needed = [each for each in command.params if isinstance(each, click.Argument) and each.required]
    positional = [word for word in words if not word.startswith("-")]
    if rest or len(positional) < len(needed):
        return f"{line}: not the arguments that it takes"
    return None


def test_every_alert_has_its_section_and_every_section_its_alert() -> None:
    text = (_DOCS / "runbooks.md").read_text()
    rules = yaml.safe_load(_RULES.read_text())
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    sections = set(re.findall(r"^## (Headrace\w+)$", text, re.MULTILINE))
    shared = set(re.findall(r"^Also for (Headrace\w+),", text, re.MULTILINE))
    assert sections | shared == alerts
    assert not sections & shared


def test_a_section_says_what_it_means_and_what_to_do() -> None:
    sections = re.split(r"^## ", (_DOCS / "runbooks.md").read_text(), flags=re.MULTILINE)[1:]
    for section in sections:
        assert all(f"**{word}.**" in section for word in ("Means", "Look", "Do")), section.split("\n")[0]


@pytest.mark.parametrize("page", _PAGES)
def test_commands_exist_with_their_options(page: str) -> None:
    found = _commands((_DOCS / page).read_text())
    assert found
    assert [wrong for line in found if (wrong := wrong_with(line))] == []


@pytest.mark.parametrize("page", _PAGES)
def test_links_lead_to_a_heading(page: str) -> None:
    lost = []
    for target, anchor in re.findall(r"\]\(([\w./-]*)#([\w-]+)\)", (_DOCS / page).read_text()):
        text = (_DOCS / (target or page)).read_text()
        if anchor not in {_slug(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}:
            lost.append(f"{target}#{anchor}")
    assert lost == []


@pytest.mark.parametrize(
    ("line", "is_good"),
    [
        ("headrace cluster status --wait 60", True),
        ("headrace topic describe orders", True),
        ("headrace topic describes orders", False),
        ("headrace cluster status --patience 60", False),
        ("headrace cluster unregister", False),
        ("headrace txn list --older-than", False),
    ],
)
def test_a_command_that_does_not_exist_is_noticed(line: str, is_good: bool) -> None:
    assert (wrong_with(line) is None) is is_good
