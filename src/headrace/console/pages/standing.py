"""What a page says of a service: that it was not given, does not answer, or is not for this viewer."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeVar

from headrace.console.services.following import Told

T = TypeVar("T")


class Words(NamedTuple):
    """Of one service."""

    who: str
    what: str
    """That it tells, as the beginning of a sentence."""
    option: str
    use: str
    """What is shown where it is given."""


REGISTRY: Final = Words(
    "schema registry",
    "Subjects are",
    "--registry http://127.0.0.1:8081",
    "its subjects are shown here, and records are decoded by their schemas",
)
CONNECT: Final = Words(
    "worker of Connect",
    "Connectors are",
    "--connect http://127.0.0.1:8083",
    "its connectors are shown here",
)


class Standing(NamedTuple):
    is_known: bool
    """There is something to show."""
    headline: str
    """Empty where there is nothing to say."""
    sentence: str
    command: str
    as_of_ms: int
    """Where what is shown is old; otherwise 0."""


_NOTHING_SAID: Final = Standing(True, "", "", "", 0)


def standing(told: Told[T] | None, words: Words, *, may_see: bool) -> Standing:
    if told is None:
        sentence = f"Say where one is, and {words.use}."
        command = f"headrace console {words.option}"
        return Standing(False, f"No {words.who} is given.", sentence, command, 0)
    if not may_see:
        sentence = "To see them takes DESCRIBE_CONFIGS on the cluster."
        return Standing(False, f"{words.what} not shown.", sentence, "", 0)
    if told.found is None:
        headline = f"The {words.who} tells nothing." if told.failing else "The first look at it is under way."
        return Standing(False, headline, told.failing, "", 0)
    if told.failing:
        return Standing(True, f"The {words.who} tells nothing now.", told.failing, "", told.at_ms)
    return _NOTHING_SAID
