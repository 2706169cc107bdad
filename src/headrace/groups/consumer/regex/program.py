"""A parsed pattern as a machine of states, each of which waits for one character or leads on without any."""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.groups.consumer.regex.characters import Characters
from headrace.groups.consumer.regex.parser import SyntaxProblem
from headrace.groups.consumer.regex.syntax import Either, InTurn, Node, OneOf, Place, Repeated

_MAX_STATES: Final = 5_000
"""Bounds what one pattern can cost, in memory and for each character of a name."""

ACCEPT: Final = 0


class Awaits(NamedTuple):
    characters: Characters
    then: int


class Forks(NamedTuple):
    to: list[int]


class Requires(NamedTuple):
    place: Place
    then: int


State = Awaits | Forks | Requires


class Program(NamedTuple):
    states: list[State]
    """The first is the accepting one."""
    start: int


def compile_program(node: Node) -> Program:
    states: list[State] = [Forks([])]
    return Program(states, _add(states, node, ACCEPT))


def _add(states: list[State], node: Node, then: int) -> int:
    """The state in which to look for `node`, and for `then` behind it."""
    if isinstance(node, OneOf):
        return _new(states, Awaits(node.characters, then))
    if isinstance(node, Place):
        return _new(states, Requires(node, then))
    if isinstance(node, InTurn):
        for part in reversed(node.parts):
            then = _add(states, part, then)
        return then
    if isinstance(node, Either):
        return _new(states, Forks([_add(states, choice, then) for choice in node.choices]))
    return _add_repeated(states, node, then)


def _add_repeated(states: list[State], node: Repeated, then: int) -> int:
    if node.most is None:
        loop = _new(states, Forks([then]))
        again = states[loop]
        assert isinstance(again, Forks)
        again.to.append(_add(states, node.part, loop))
        then = loop
    else:
        end = then
        for _ in range(node.most - node.least):
            then = _new(states, Forks([end, _add(states, node.part, then)]))
    for _ in range(node.least):
        then = _add(states, node.part, then)
    return then


def _new(states: list[State], state: State) -> int:
    if len(states) >= _MAX_STATES:
        raise SyntaxProblem("expression too large")
    states.append(state)
    return len(states) - 1
