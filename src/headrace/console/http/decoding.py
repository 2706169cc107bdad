"""How records are decoded for a viewer."""

from __future__ import annotations

from starlette.requests import Request

from headrace.console.http.sights import sight_of
from headrace.console.records.decoding import Decoder
from headrace.console.services.registry import RegistrySeen
from headrace.console.services.services import Services


def services_of(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


def decoder_of(request: Request, topic: str) -> Decoder | None:
    """None where no registry was given. By the rule of the registry itself: whoever may read a topic is told
    the schemas of its subjects, and of no others."""
    followed = services_of(request).registry
    if followed is None:
        return None
    told = followed.told
    if told.found is None:
        unknown = "the registry does not answer" if told.failing else "the registry is being asked"
        return Decoder(topic, None, None, unknown)
    return Decoder(topic, told.found, visible_to(request, told.found))


def visible_to(request: Request, seen: RegistrySeen) -> RegistrySeen:
    sight = sight_of(request)
    return seen.limited(sight.may_read_subject) if sight.principal else seen
