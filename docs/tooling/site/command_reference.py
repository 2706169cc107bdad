"""A page for each command, from what `--help` says: walked through the lazy groups, so none is forgotten."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

import click

from headrace.cli.main import cli

FOLDER: Final = PurePosixPath("commands")
_INTRODUCTION: Final = """\
# Commands

What `--help` says of every command, written from the code when this site was built. Commands that ask a
cluster take `-b HOST:PORT`, or `HEADRACE_BOOTSTRAP`; a secured one also needs `--command-config FILE`, or
`HEADRACE_COMMAND_CONFIG`. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted; those that mean
something else say so.

| Command | |
|---|---|
"""


def render() -> dict[PurePosixPath, str]:
    context = click.Context(cli, info_name="headrace", terminal_width=100)
    written = {}
    index = _INTRODUCTION
    for name, command in _commands(context):
        written[FOLDER / f"{name}.md"] = "\n".join(_page(command, context, name, 1)) + "\n"
        index += f"| [`headrace {name}`]({name}.md) | {_cell(_first_line(context, name, command))} |\n"
    written[FOLDER / "index.md"] = index
    return written


def _commands(context: click.Context) -> Iterator[tuple[str, click.Command]]:
    group = context.command
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            yield name, command


def _first_line(context: click.Context, name: str, command: click.Command) -> str:
    lazy = getattr(context.command, "lazy", {})
    return lazy[name][1] if name in lazy else command.get_short_help_str(200)


def _page(command: click.Command, parent: click.Context, name: str, depth: int) -> Iterator[str]:
    context = click.Context(command, parent=parent, info_name=name, terminal_width=100)
    yield f"{'#' * depth} `{context.command_path}`\n"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{context.command_path} {usage}\n```\n"
    if command.help:
        yield _prose(command.help)
    rows = [
        record
        for parameter in command.get_params(context)
        if "--help" not in parameter.opts and (record := parameter.get_help_record(context))
    ]
    if rows:
        yield "| Option | |\n|---|---|"
        yield from (f"| {_code(option)} | {_cell(text)} |" for option, text in rows)
        yield ""
    children = list(_commands(context))
    if children:
        for child, subcommand in children:
            yield from _page(subcommand, context, child, min(depth + 1, 4))


def _prose(text: str) -> str:
    """click's help is nearly Markdown; a paragraph after `\\b` keeps its lines."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", text.split("\f")[0].strip()):
        if paragraph.lstrip().startswith("\b"):
            body = paragraph.replace("\b", "").strip("\n")
            parts.append(f"```text\n{body}\n```")
        else:
            parts.append(_escaped(" ".join(paragraph.split())))
    return "\n\n".join(parts) + "\n"


def _escaped(text: str) -> str:
    """Outside of code, what Markdown would take for markup."""
    spans = re.split(r"(`[^`]+`)", text)
    return "".join(s if s.startswith("`") else re.sub(r"([\\*_<\[\]#])", r"\\\1", s) for s in spans)


def _cell(text: str) -> str:
    return _escaped(" ".join(text.split())).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")
