"""Templates. Nothing that is put into one is markup unless the template says so, and nothing hidden stays so:
each value passes `visible` on its way, whatever page forgets to ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from headrace.client.shell_words import command, word
from headrace.console import words
from headrace.console.pictures import charts, lanes, ribbons, squares

LONGEST_NAME: Final = 200
"""That is shown whole in a list: a page of a hundred names of 32 KB each would be 50 MB."""
LONGEST_SHOWN: Final = 8192
"""Of whatever else is shown and is not a record: paths of pictures are the longest of ours."""
LONGEST_LINKED: Final = 1000
FILTERS: Final = {
    "count": words.count,
    "short": words.short,
    "rate": words.rate,
    "size": words.size,
    "duration": words.duration,
    "late": words.late,
    "days": words.days,
    "clock": words.clock,
    "moment": words.moment,
    "precise": words.precise,
    "parts": words.parts_of,
}


class Address(str):
    """Made of what `quote` and `urlencode` leave: nothing in it is hidden. Cut, it would lead elsewhere."""

    __slots__ = ()


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("headrace.console"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalised,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(FILTERS)
    made.filters.update(segment=segment, brief=brief, lines=lines, exact=exact, word=word)
    made.tests.update(linked=is_linked)
    made.globals.update(
        counted=words.counted,
        command=command,
        link=link,
        sparkline=charts.sparkline,
        area=charts.area,
        ribbon=ribbons.ribbon,
        lanes=lanes.lanes,
        squarified=squares.squarified,
    )
    return made


def _finalised(value: Any) -> Any:
    if isinstance(value, Markup | Address) or not isinstance(value, str):
        return value
    return words.visible(words.cut(value, LONGEST_SHOWN))


def lines(text: str) -> Markup:
    """For what may have line breaks: records, in an element that keeps them."""
    return escape(words.visible(text, keep="\n\t"))


def exact(text: str) -> Markup:
    """For values that a form sends back: what nobody sees has to come back as it was."""
    return escape(text)


def segment(text: str) -> str:
    """One part of a path: a topic cannot have a slash in its name, a group can."""
    return quote(text, safe="")


def brief(name: str) -> str:
    """For a list, in which there may be a hundred of them."""
    return words.cut(name, LONGEST_NAME)


def is_linked(name: str) -> bool:
    """A browser takes dots for the way upwards, however they are written, and asks for another page."""
    return name not in (".", "..") and len(name) <= LONGEST_LINKED


def link(path: str, parameters: Mapping[str, object] | None = None, **more: object) -> Address:
    """The path with a query; what is None or empty is left out."""
    every = {**(parameters or {}), **more}
    given = {name: value for name, value in every.items() if value not in (None, "")}
    return Address(f"{path}?{urlencode(given, doseq=True)}" if given else path)


def render(template: str, values: Mapping[str, Any]) -> str:
    return environment().get_template(template).render(values)
