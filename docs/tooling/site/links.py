"""Links of a page, made true for the place that the page has on the site.

A link to another page leads to that page. One to a file that the site does not have (a test, a module)
becomes its words with the path: a reader of the site has no such file, and a dead link helps nobody.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Final

from docs.tooling.site.pages import on_the_site

_CODE: Final = r"(?P<code>^(?P<fence>```+|~~~+).*?^(?P=fence)[ \t]*$|`[^`\n]+`)"
_LINK: Final = r"(?P<image>!?)\[(?P<words>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s]+)\)"
_HTML: Final = r"(?P<name>\b(?:src|srcset|href)=\")(?P<place>[^\"]+)(?P<end>\")"
_PATTERN: Final = re.compile(f"{_CODE}|{_LINK}|{_HTML}", re.MULTILINE | re.DOTALL)


def links(text: str) -> list[tuple[str, str]]:
    """The links of a page in order, words and target, as they are written; examples of code have none."""
    found = ((match.group("words"), match.group("target")) for match in _PATTERN.finditer(text))
    return [(words, target) for words, target in found if target]


def rewritten(text: str, source: PurePosixPath, target: PurePosixPath) -> str:
    """The text of a page with its links as they have to be on the site."""
    place = _placed(source, target)

    def replace(match: re.Match[str]) -> str:
        if match.group("code"):
            return match.group()
        if match.group("name"):
            there = place(match.group("place"))
            return f"{match.group('name')}{there or match.group('place')}{match.group('end')}"
        there = place(match.group("target"))
        words = re.sub(_PATTERN, replace, match.group("words"))  # a picture that is a link
        if there is None:
            path = posixpath.normpath(str(source.parent / match.group("target")))
            return f"{words} (`{path}`)"
        return f"{match.group('image')}[{words}]({there})"

    return _PATTERN.sub(replace, text)


def _placed(source: PurePosixPath, target: PurePosixPath) -> Callable[[str], str | None]:
    def place(link: str) -> str | None:
        if "://" in link or link.startswith(("#", "mailto:")):
            return link
        path, hash_sign, fragment = link.partition("#")
        there = on_the_site(PurePosixPath(posixpath.normpath(str(source.parent / path))))
        if there is None:
            return None
        return posixpath.relpath(str(there), str(target.parent)) + hash_sign + fragment

    return place
