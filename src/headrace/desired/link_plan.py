"""The difference between a file and a cluster's links.

A link that the file names has the source, the client config and the groups that the file says, and no others.
Its state, replicas and settings are left as they are where the file does not name them. Nothing is promoted
here: a copy that is promoted is an ordinary topic.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.desired.changes import LinkChange, LinkCreation, LinkDeletion
from headrace.desired.document import Document, Topic
from headrace.desired.links import Link
from headrace.desired.present import Present, PresentLink


def link_changes(document: Document, present: Present) -> tuple[list[LinkCreation | LinkChange], list[str]]:
    """Of what the file names; and what is refused."""
    changes: list[LinkCreation | LinkChange] = []
    refused = [
        f"topic {name} is a copy of another cluster's topic: name it in `links`, or promote it with"
        f" `headrace link promote {name}`"
        for name in sorted(document.topics)
        if name in present.copies
    ]
    for name, wanted in sorted(document.links.items()):
        there = present.links.get(name)
        why = _refusal(name, wanted, there, present)
        if why is not None:
            refused.append(f"link {name}: {why}")
        elif there is None or there.topic is None:
            changes.append(LinkCreation(name, wanted))
        else:
            differing = _differing(wanted, there)
            if differing:
                changes.append(LinkChange(name, differing))
    return changes, refused


def _refusal(name: str, wanted: Link, there: PresentLink | None, present: Present) -> str | None:
    if there is None or there.topic is None:
        if there is None and name in present.unlinked:
            return (
                "a topic of that name is there, and it is no copy: a link makes its topic itself; delete the"
                " topic, or link under another name"
            )
        alive = len(present.racks)
        if wanted.replicas is not None and wanted.replicas > alive:
            return f"{wanted.replicas} replicas need as many brokers; {alive} live"
    if there is None:
        return None
    if there.is_promoted:
        return (
            "it is promoted, so it copies no more and cannot again: take it out of `links`; in `topics` it"
            " can stand as what it is now"
        )
    if there.values["topic"] != wanted.topic:
        return (
            f"it copies {there.values['topic']} and cannot copy {wanted.topic}, which is another log:"
            f" `headrace link delete {name}` deletes the copy, then this makes a new one"
        )
    return None


def _differing(wanted: Link, there: PresentLink) -> dict[str, tuple[str | None, str | None]]:
    values = wanted.values
    if wanted.state is None:
        values["state"] = there.values["state"]
    return {
        what: (there.values.get(what), values.get(what))
        for what in {**values, **there.values}
        if there.values.get(what) != values.get(what)
    }


def unnamed_links(document: Document, present: Present) -> list[LinkDeletion]:
    """What would be deleted of what the file owns and does not name."""
    return [
        LinkDeletion(name, there.topic is not None)
        for name, there in sorted(present.links.items())
        if not there.is_promoted and name not in document.links
    ]


def with_copies(document: Document, present: Present) -> tuple[Document, Present]:
    """Both with the copies that the file names, as topics: so their replicas and settings follow the file.
    Partitions, and settings that the file does not name, are the source's."""
    copies = {name: each for name, each in present.copies.items() if name in document.links}
    topics = {name: each for name, each in document.topics.items() if name not in present.copies}
    for name, copy in copies.items():
        link = document.links[name]
        topics[name] = Topic(None, link.replicas, {**copy.settings, **link.settings})
    return replace(document, topics=topics), replace(present, topics={**present.topics, **copies})
