"""Drawn clusters and files. There are few names, so that the two meet."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from headrace.client.quotas import Entity
from headrace.desired.document import Document, PasswordSource, Subject, Topic, User
from headrace.desired.links import Link, joined
from headrace.desired.ownership import Kind, Ownership
from headrace.desired.present import Present, PresentLink, PresentSubject, PresentTopic
from headrace.desired.schemas import Schema
from headrace.registry.content import Reference, SchemaType
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.scram_credential import ScramMechanism

RACKS = {1: "a", 2: "b", 3: None}
NAMES = st.sampled_from(["a.1", "a.2", "b.1", "no", "1.10"])
SETTINGS = st.dictionaries(
    st.sampled_from(["retention.ms", "cleanup.policy", "preallocate"]),
    st.sampled_from(["1000", "-1", "compact", "true", "0.5", "no", ""]),
)
MECHANISMS = st.dictionaries(st.sampled_from(ScramMechanism), st.sampled_from([4096, 8192]), min_size=1)
QUOTAS = st.dictionaries(
    st.sampled_from(["producer_byte_rate", "consumer_byte_rate"]), st.sampled_from([1.0, 5e6]), min_size=1
)
ENTITIES: st.SearchStrategy[Entity] = st.one_of(
    NAMES.map(lambda name: (("user", name),)),
    st.tuples(NAMES, NAMES).map(lambda pair: (("client-id", pair[0]), ("user", pair[1]))),
    st.sampled_from([(("user", None),), (("client-id", "a.1"), ("user", None))]),
)
RULES = st.builds(
    AclRule,
    st.just(ResourceType.TOPIC),
    NAMES,
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    NAMES.map(lambda name: f"User:{name}"),
    st.just("*"),
    st.sampled_from([Operation.READ, Operation.WRITE]),
    st.sampled_from([Permission.ALLOW, Permission.DENY]),
)
OWNED = st.builds(
    Ownership,
    st.fixed_dictionaries(
        {kind: st.sampled_from([("*",), ("a.*",), ("a.*", "no"), ("b.1",)]) for kind in Kind}
    ),
)
EVERYTHING = Ownership(dict.fromkeys(Kind, ("*",)))


LEVELS = st.sampled_from([None, "BACKWARD", "NONE"])
SCHEMAS = st.builds(
    Schema,
    st.sampled_from([SchemaType.AVRO, SchemaType.JSON]),
    st.sampled_from(['"string"', '{"type": "record"}', '{"type": ["null", "long"]}']),
    st.lists(st.builds(Reference, NAMES, NAMES, st.integers(1, 2)), max_size=1).map(tuple),
)
CONNECTORS = st.dictionaries(
    NAMES,
    st.dictionaries(
        st.sampled_from(["topic", "file"]), st.sampled_from(["1.10", "no", "7", ".*", "a,b"])
    ).map(lambda drawn: {"connector.class": "files", **drawn}),
    max_size=3,
)
GROUPS = st.lists(st.sampled_from(["billing-*", "audit"]), max_size=2).map(joined)
LINKS = st.builds(
    Link,
    st.sampled_from(["old:9092", "old-1:9092,old-2:9092"]),
    st.sampled_from(["a.1", "orders"]),
    st.sampled_from([None, "old.properties"]),
    GROUPS,
    st.sampled_from([None, "ACTIVE", "PAUSED"]),
    st.none() | st.integers(1, 3),
    SETTINGS,
)


@st.composite
def _linked(draw: st.DrawFn) -> PresentLink:
    values = {"state": draw(st.sampled_from(["ACTIVE", "PAUSED", "PROMOTED"])), **draw(LINKS).values}
    return PresentLink(values, draw(_placed()))


@st.composite
def _placed(draw: st.DrawFn) -> PresentTopic:
    brokers = st.lists(st.sampled_from(sorted(RACKS)), min_size=1, max_size=3, unique=True).map(tuple)
    held = draw(st.lists(brokers, min_size=1, max_size=4))
    return PresentTopic(dict(enumerate(held)), draw(SETTINGS))


def _with_topics_of_links(present: Present) -> Present:
    """What is promoted is a topic as well; a copy is none."""
    promoted = {name: each.topic for name, each in present.links.items() if each.is_promoted and each.topic}
    topics = {name: each for name, each in present.topics.items() if name not in present.links}
    return replace(present, topics={**topics, **promoted})


CLUSTERS = st.builds(
    Present,
    racks=st.just(RACKS),
    topics=st.dictionaries(NAMES, _placed(), max_size=4),
    users=st.dictionaries(NAMES, MECHANISMS, max_size=3),
    acls=st.frozensets(RULES, max_size=4),
    quotas=st.dictionaries(ENTITIES, QUOTAS, max_size=3),
    subjects=st.dictionaries(NAMES, st.builds(PresentSubject, SCHEMAS, LEVELS, st.none()), max_size=3),
    connectors=CONNECTORS,
    links=st.dictionaries(NAMES, _linked(), max_size=3),
).map(_with_topics_of_links)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    owns = draw(OWNED)
    counts = st.none() | st.integers(1, 4)
    topics = st.dictionaries(
        NAMES, st.builds(Topic, counts, st.none() | st.integers(1, 3), SETTINGS), max_size=4
    )
    users = st.dictionaries(
        NAMES, st.builds(User, MECHANISMS, st.just(PasswordSource("env", "P"))), max_size=3
    )
    quotas = draw(st.dictionaries(ENTITIES, QUOTAS, max_size=3))
    return Document(
        owns,
        draw(st.booleans()),
        {name: topic for name, topic in draw(topics).items() if owns.topic(name)},
        {name: user for name, user in draw(users).items() if owns.user(name)},
        frozenset(rule for rule in draw(st.frozensets(RULES, max_size=4)) if owns.principal(rule.principal)),
        {entity: values for entity, values in quotas.items() if owns.quota(entity)},
        {
            name: subject
            for name, subject in draw(
                st.dictionaries(NAMES, st.builds(Subject, LEVELS, SCHEMAS, st.none()), max_size=3)
            ).items()
            if owns.subject(name)
        },
        {name: settings for name, settings in draw(CONNECTORS).items() if owns.connector(name)},
        {
            name: link
            for name, link in draw(st.dictionaries(NAMES, LINKS, max_size=3)).items()
            if owns.link(name)
        },
    )
