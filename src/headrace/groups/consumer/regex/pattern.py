"""Matching names against a pattern, in time that grows with the name alone.

All ways through the pattern are followed at once, and what a character leads to is remembered. There is no
going back, so no pattern can make the broker think for long, whoever wrote it.
"""

from __future__ import annotations

from typing import Final

from headrace.core.errors import InvalidRegularExpression
from headrace.groups.consumer.regex.characters import WORD
from headrace.groups.consumer.regex.parser import SyntaxProblem, parse
from headrace.groups.consumer.regex.program import ACCEPT, Awaits, Forks, Program, compile_program
from headrace.groups.consumer.regex.syntax import Place

_MAX_REMEMBERED: Final = 1_000
_START: Final = "start"
_NAMES_END: Final = ""

Ways = tuple[frozenset[int], str]
"""The states that have been reached, and the kind of the last character: `_START`, "word" or "other"."""


def compile_pattern(regex: str) -> Pattern:
    try:
        return Pattern(compile_program(parse(regex)))
    except SyntaxProblem as problem:
        raise InvalidRegularExpression(
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {problem}."
        ) from None


class Pattern:
    __slots__ = ("_program", "_steps")

    def __init__(self, program: Program) -> None:
        self._program = program
        self._steps: dict[Ways, dict[str, Ways]] = {}

    def matches(self, name: str) -> bool:
        """All of the name, not a part of it."""
        ways: Ways = (frozenset((self._program.start,)), _START)
        for character in name:
            ways = self._step(ways, character)
            if not ways[0]:
                return False
        return ACCEPT in self._step(ways, _NAMES_END)[0]

    def _step(self, ways: Ways, character: str) -> Ways:
        if not character.isascii():
            return self._followed(ways, character)  # too many to remember
        known = self._steps.get(ways)
        if known is None:
            if len(self._steps) >= _MAX_REMEMBERED:
                self._steps.clear()
            known = self._steps[ways] = {}
        found = known.get(character)
        if found is None:
            found = known[character] = self._followed(ways, character)
        return found

    def _followed(self, ways: Ways, character: str) -> Ways:
        """Where one character leads; for the end of the name, where that leads without any."""
        here = self._without_characters(ways, character)
        if character == _NAMES_END:
            return frozenset(here), "other"
        states = self._program.states
        there = frozenset(
            state.then
            for index in here
            if isinstance(state := states[index], Awaits) and character in state.characters
        )
        return there, "word" if character in WORD else "other"

    def _without_characters(self, ways: Ways, character: str) -> set[int]:
        at_start = ways[1] == _START
        boundary = (ways[1] == "word") != (character in WORD)
        holds = {
            Place.START: at_start,
            Place.END: character == _NAMES_END,
            Place.BOUNDARY: boundary,
            Place.NO_BOUNDARY: not boundary,
        }
        states = self._program.states
        reached = set(ways[0])
        unseen = list(reached)
        while unseen:
            state = states[unseen.pop()]
            if isinstance(state, Awaits):
                continue
            for index in (
                state.to if isinstance(state, Forks) else (state.then,) if holds[state.place] else ()
            ):
                if index not in reached:
                    reached.add(index)
                    unseen.append(index)
        return reached
