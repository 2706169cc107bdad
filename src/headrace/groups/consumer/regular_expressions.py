"""Regular expressions of strangers, by RE2: the time of a match grows with the name alone, and its memory is
bounded. Kafka's own engine is RE2 too, in Java, so that both take the same syntax.
"""

from __future__ import annotations

from typing import Any, Final

from headrace.core.errors import InvalidRegularExpression

MAX_MEMORY_BYTES: Final = 64 * 1024
"""Of one expression, compiled: a thousand alternatives fit, and what would follow thousands of states at once
does not."""

_KAFKAS_WORDS: Final = {
    "missing )": "missing closing )",
    "unexpected )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
    "pattern too large - compile failed": "expression too large",
}
"""What the Java engine says, by what ours says."""


class Pattern:
    __slots__ = ("_compiled",)

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def matches(self, name: str) -> bool:
        """All of the name, not a part of it."""
        return self._compiled.fullmatch(name) is not None


def compile_pattern(regex: str) -> Pattern:
    """Raises InvalidRegularExpression."""
    # Two megabytes that most brokers never need, imported in some milliseconds.
    import re2  # type: ignore[import-untyped]  # it has no types of its own

    options = re2.Options()
    options.max_mem = MAX_MEMORY_BYTES
    options.log_errors = False
    try:
        return Pattern(re2.compile(regex, options))
    except re2.error as error:
        raw = error.args[0]
        said = raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
        problem = said.partition(": ")[0]
        raise InvalidRegularExpression(
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: "
            f"{_KAFKAS_WORDS.get(problem, problem)}."
        ) from None
