"""Patterns in the syntax of RE2, which is what Kafka's clients write: no back references, no looking around.

Whether a repetition is greedy, and what a group captures, makes no difference to whether a name matches.
"""

from __future__ import annotations

from typing import Final

from headrace.groups.consumer.regex import characters as sets
from headrace.groups.consumer.regex.characters import Characters
from headrace.groups.consumer.regex.syntax import Either, InTurn, Node, OneOf, Place, Repeated

_MAX_REPEAT: Final = 1_000
_MAX_DEPTH: Final = 200
_CONTROL: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PLACES: Final = {"A": Place.START, "z": Place.END, "b": Place.BOUNDARY, "B": Place.NO_BOUNDARY}


class SyntaxProblem(Exception):
    """In the words of RE2."""


def parse(text: str) -> Node:
    parser = _Parser(text)
    node = parser.alternatives(0)
    if parser.rest():
        raise SyntaxProblem("missing closing )")
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._any_case = False
        self._over_lines = False
        """Whether a dot also stands for the end of a line."""

    # Reading

    def rest(self) -> bool:
        return self._at < len(self._text)

    def _sees(self, prefix: str) -> bool:
        return self._text.startswith(prefix, self._at)

    def _takes(self, prefix: str) -> bool:
        if not self._sees(prefix):
            return False
        self._at += len(prefix)
        return True

    def _next(self, problem: str) -> str:
        if not self.rest():
            raise SyntaxProblem(problem)
        self._at += 1
        return self._text[self._at - 1]

    def _until(self, end: str, problem: str) -> str:
        found = self._text.find(end, self._at)
        if found < 0:
            raise SyntaxProblem(problem)
        taken = self._text[self._at : found]
        self._at = found + len(end)
        return taken

    # The grammar

    def alternatives(self, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise SyntaxProblem("expression nests too deeply")
        choices = [self._in_turn(depth)]
        while self._takes("|"):
            choices.append(self._in_turn(depth))
        return choices[0] if len(choices) == 1 else Either(tuple(choices))

    def _in_turn(self, depth: int) -> Node:
        parts: list[Node] = []
        repeatable = False
        while self.rest() and not self._sees("|") and not self._sees(")"):
            if self._sees("*") or self._sees("+") or self._sees("?"):
                parts[-1:] = [self._repeated(parts[-1:], repeatable)]
                repeatable = False
                continue
            if self._sees("{") and (bounds := self._bounds()) is not None:
                parts[-1:] = [self._counted(parts[-1:], bounds, repeatable)]
                repeatable = False
                continue
            read = self._atom(depth)
            parts.extend(read)
            repeatable = bool(read)
        return InTurn(tuple(parts))

    def _repeated(self, last: list[Node], repeatable: bool) -> Node:
        sign = self._next("")
        self._check_repeatable(last, repeatable)
        self._takes("?")
        return Repeated(last[0], 1 if sign == "+" else 0, 1 if sign == "?" else None)

    def _counted(self, last: list[Node], bounds: tuple[int, int | None], repeatable: bool) -> Node:
        self._check_repeatable(last, repeatable)
        self._takes("?")
        least, most = bounds
        if least > _MAX_REPEAT or (most is not None and (most > _MAX_REPEAT or most < least)):
            raise SyntaxProblem("invalid repeat count")
        return Repeated(last[0], least, most)

    def _check_repeatable(self, last: list[Node], repeatable: bool) -> None:
        if not last:
            raise SyntaxProblem("missing argument to repetition operator")
        if not repeatable:
            raise SyntaxProblem("invalid nested repetition operator")

    def _bounds(self) -> tuple[int, int | None] | None:
        """Of {2}, {2,} and {2,5}. None if the brace is no repetition: then it stands for itself."""
        end = self._text.find("}", self._at)
        least, comma, most = self._text[self._at + 1 : end].partition(",")
        if end < 0 or not _is_number(least) or (most and not _is_number(most)):
            return None
        self._at = end + 1
        if not comma:
            return int(least), int(least)
        return int(least), int(most) if most else None

    def _atom(self, depth: int) -> list[Node]:
        """One thing, or nothing where only flags are set."""
        if self._takes("\\Q"):
            return self._quoted()
        sign = self._next("")
        if sign == "(":
            return self._group(depth)
        if sign == "[":
            return [OneOf(self._bracket())]
        if sign == "\\":
            return [self._escape()]
        if sign == ".":
            return [OneOf(sets.ALL if self._over_lines else sets.NO_NEWLINE)]
        if sign in "^$":
            return [Place.START if sign == "^" else Place.END]
        return [self._literal(sign)]

    def _literal(self, character: str) -> OneOf:
        return OneOf(self._cased(sets.one(character)))

    def _cased(self, characters: Characters) -> Characters:
        return characters.in_either_case() if self._any_case else characters

    def _quoted(self) -> list[Node]:
        end = self._text.find("\\E", self._at)
        quoted = self._text[self._at :] if end < 0 else self._text[self._at : end]
        self._at = len(self._text) if end < 0 else end + 2
        return [self._literal(each) for each in quoted]

    # Groups and flags

    def _group(self, depth: int) -> list[Node]:
        outside = self._any_case, self._over_lines
        if self._takes("?"):
            if self._takes("P<") or self._takes("<"):
                name = self._until(">", "invalid named capture")
                if not name.replace("_", "a").isalnum() or not name.isascii():
                    raise SyntaxProblem("invalid named capture")
            elif self._flags():
                return []
        node = self.alternatives(depth + 1)
        if not self._takes(")"):
            raise SyntaxProblem("missing closing )")
        self._any_case, self._over_lines = outside
        return [node]

    def _flags(self) -> bool:
        """Whether that was all, as in (?i). Of the flags, only those for cases and for dots matter here."""
        on = True
        while True:
            flag = self._next("missing closing )")
            if flag == "-" and on:
                on = False
            elif flag == "i":
                self._any_case = on
            elif flag == "s":
                self._over_lines = on
            elif flag in ":)":
                return flag == ")"
            elif flag not in "mU":
                raise SyntaxProblem("invalid or unsupported Perl syntax")

    # Escapes and classes

    def _escape(self) -> Node:
        letter = self._next("trailing backslash at end of expression")
        if letter in _PLACES:
            return _PLACES[letter]
        if letter == "C":
            return OneOf(sets.ALL)
        found = self._class_escape(letter)
        return self._literal(self._character(letter)) if found is None else OneOf(self._cased(found))

    def _class_escape(self, letter: str) -> Characters | None:
        if letter in sets.PERL:
            return sets.PERL[letter]
        if letter not in "pP":
            return None
        name = self._next("invalid character class range")
        if name == "{":
            name = self._until("}", "invalid character class range")
        negated = (letter == "P") != name.startswith("^")
        found = sets.unicode_class(name.removeprefix("^"))
        if found is None:
            raise SyntaxProblem("invalid character class range")
        return found.negated() if negated else found

    def _character(self, letter: str) -> str:
        """The character that an escape stands for."""
        if letter in _CONTROL:
            return _CONTROL[letter]
        if letter == "x":
            code = self._hexadecimal()
        elif letter == "0" or (letter in "1234567" and self._text[self._at : self._at + 1].isdigit()):
            code = self._octal(letter)
        elif not letter.isalnum() or not letter.isascii():
            return letter
        else:
            raise SyntaxProblem("invalid escape sequence")
        if code > 0x10FFFF:
            raise SyntaxProblem("invalid escape sequence")
        return chr(code)

    def _hexadecimal(self) -> int:
        problem = "invalid escape sequence"
        number = self._until("}", problem) if self._takes("{") else self._next(problem) + self._next(problem)
        if not number or not all(each in "0123456789abcdefABCDEF" for each in number):
            raise SyntaxProblem(problem)
        return int(number, 16)

    def _octal(self, first: str) -> int:
        number = first
        while len(number) < 3 and self.rest() and self._text[self._at] in "01234567":
            number += self._next("")
        if first != "0" and len(number) < 2:
            # One digit alone would refer back to a group.
            raise SyntaxProblem("invalid escape sequence")
        return int(number, 8)

    def _bracket(self) -> Characters:
        negated = self._takes("^")
        found = sets.NONE
        first = True
        while first or not self._takes("]"):
            if not self.rest():
                raise SyntaxProblem("missing closing ]")
            found |= self._in_bracket()
            first = False
        taken = self._cased(found)
        return taken.negated() if negated else taken

    def _in_bracket(self) -> Characters:
        if self._sees("[:") and (end := self._text.find(":]", self._at + 2)) >= 0:
            name = self._text[self._at + 2 : end]
            self._at = end + 2
            known = sets.POSIX.get(name.removeprefix("^"))
            if known is None:
                raise SyntaxProblem("invalid character class range")
            return known.negated() if name.startswith("^") else known
        if self._sees("\\") and self._at + 1 < len(self._text):
            letter = self._text[self._at + 1]
            if letter in sets.PERL or letter in "pP":
                self._at += 2
                taken = self._class_escape(letter)
                assert taken is not None, "the letter is of a class"
                return taken
        first = self._bracket_character()
        if self._sees("-") and self._text[self._at + 1 : self._at + 2] not in ("", "]"):
            self._at += 1
            last = self._bracket_character()
            if last < first:
                raise SyntaxProblem("invalid character class range")
            return sets.between(first, last)
        return sets.one(first)

    def _bracket_character(self) -> str:
        character = self._next("missing closing ]")
        if character != "\\":
            return character
        return self._character(self._next("trailing backslash at end of expression"))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 6
