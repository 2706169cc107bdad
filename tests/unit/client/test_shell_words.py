"""Commands that somebody pastes: each name stays one word and is never taken for an option."""

from __future__ import annotations

import subprocess

import click
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.shell_words import command

NAMES = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=12)


def parsed(line: str) -> list[str]:
    """As bash has it, and as a command of ours takes it."""
    script = f"words() {{ printf '%s\\0' \"$@\"; }}; {line.replace('headrace x', 'words', 1)}"
    words = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout.decode()
    found: list[str] = []

    @click.command()
    @click.argument("names", nargs=-1)
    @click.option("--to")
    @click.option("--flag", is_flag=True)
    def reader(names: tuple[str, ...], to: str | None, flag: bool) -> None:
        found.extend([*names, str(to), str(flag)])

    result = CliRunner().invoke(reader, words.split("\0")[:-1])
    assert result.exit_code == 0, result.output
    return found


def test_a_name_that_begins_with_a_dash_comes_last() -> None:
    assert command("headrace x", "orders", options="--flag") == "headrace x orders --flag"
    assert command("headrace x", "-rf", options="--flag") == "headrace x --flag -- -rf"
    assert command("headrace x", "--help") == "headrace x -- --help"
    assert command("headrace x", "") == "headrace x ''"


@given(NAMES, st.sampled_from(["", "--flag", "--to 5", "--to -5 --flag"]))
def test_whatever_the_name_is_it_arrives(name: str, options: str) -> None:
    wanted = "-5" if "-5" in options else "5" if "5" in options else "None"
    assert parsed(command("headrace x", name, options=options)) == [name, wanted, str("--flag" in options)]


@given(st.lists(NAMES, min_size=1, max_size=3))
def test_several_names_arrive_in_their_order(names: list[str]) -> None:
    assert parsed(command("headrace x", *names))[:-2] == names
