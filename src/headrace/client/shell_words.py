"""Words of a command line that somebody may paste, whatever strangers have put into a name."""

from __future__ import annotations

import shlex


def word(text: str) -> str:
    """For a shell. What cannot be printed is written as bash and zsh read it: a line stays one line."""
    if text.isprintable():
        return shlex.quote(text)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + "".join(each if each.isprintable() else _escape(each) for each in escaped) + "'"


def command(words: str, *names: str, options: str = "") -> str:
    """A command line: its words as they are, names quoted. A name that begins with a dash would be taken for
    an option, so such names come last, after a double dash."""
    given = " ".join(map(word, names))
    if any(name.startswith("-") for name in names):
        return " ".join(filter(None, (words, options, "--", given)))
    return " ".join(filter(None, (words, given, options)))


def _escape(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
