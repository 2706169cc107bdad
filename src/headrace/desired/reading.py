"""From the bytes of a file to a `Document`. What is wrong is told with its line, before a broker is asked."""

from __future__ import annotations

from typing import Final

from headrace.client.quota_values import QUOTAS, quota_value
from headrace.client.quotas import CLIENT_ID, IP, USER, Entity, words_of
from headrace.config.tiering import FORK
from headrace.controller.topic_names import INTERNAL_TOPICS
from headrace.core.errors import InvalidRequest
from headrace.desired.document import DEFAULT_MECHANISMS, Document, PasswordSource, Subject, Topic, User
from headrace.desired.fields import Fields, count_of, items_of, named, text_of
from headrace.desired.link_reading import link_of
from headrace.desired.links import Link
from headrace.desired.ownership import Kind, Ownership
from headrace.desired.service_reading import connector_of, subject_of
from headrace.desired.settings import OF_MOVES, written
from headrace.desired.yaml_tree import DocumentError, Items, Node, Text, read_tree
from headrace.security.acl import AclRule
from headrace.security.acl_document import GRANT_FIELDS, RULE_FIELDS, NotARule, rules_of_entry
from headrace.security.scram_credential import MAX_ITERATIONS, MIN_ITERATIONS, ScramMechanism

_SECTIONS: Final = tuple(kind.value for kind in Kind)
_LISTS: Final = (Kind.ACLS, Kind.QUOTAS)
_ENTITY_FIELDS: Final = (USER, CLIENT_ID, IP)
_RULE_FIELDS: Final = tuple(dict.fromkeys((*RULE_FIELDS, *GRANT_FIELDS)))


def read_document(content: bytes) -> Document:
    """Raises DocumentError."""
    tree = read_tree(content)
    if tree is None:
        raise DocumentError("the file is empty", 1, "`headrace export` writes one of what a cluster has")
    top = Fields(tree, "the file", ("owns", "prune", *_SECTIONS))
    owns = _owns(top)
    for kind in Kind:
        if kind.value in top and kind not in owns:
            line = top.entries[kind.value].line
            raise DocumentError(
                f"there are {kind.value}, and owns does not list them",
                line,
                f"write which names the file speaks for, as in `owns: {{{kind.value}: [shop.*]}}`",
            )
        if top.flag("prune") and kind in owns and top.node(kind.value) is None:
            empty = "[]" if kind in _LISTS else "{}"
            raise DocumentError(
                f"owns lists {kind.value}, and the file has none: with prune that would delete all of them",
                top.line,
                f"write `{kind.value}: {empty}` if that is meant",
            )
    return Document(
        owns,
        top.flag("prune"),
        {name: _topic(name, node, line, owns) for name, node, line in named(top.node("topics"), "topics")},
        {name: _user(name, node, line, owns) for name, node, line in named(top.node("users"), "users")},
        frozenset(_rules(top.node("acls"), owns)),
        _quotas(top.node("quotas"), owns),
        {
            name: _owned_subject(name, node, line, owns)
            for name, node, line in named(top.node("schemas"), "schemas")
        },
        {
            name: _owned_connector(name, node, line, owns)
            for name, node, line in named(top.node("connectors"), "connectors")
        },
        _links(top, owns),
    )


def _owns(top: Fields) -> Ownership:
    node = top.node("owns")
    if node is None:
        raise DocumentError(
            "the file does not say what it owns",
            top.line,
            "write for instance `owns: {topics: [shop.*]}`; what is not owned is never touched",
        )
    fields = Fields(node, "owns", _SECTIONS)
    return Ownership(
        {kind: _patterns(fields.entries[kind.value], kind) for kind in Kind if kind.value in fields}
    )


def _patterns(node: Node, kind: Kind) -> list[str]:
    what = f"owns: {kind.value}"
    found = []
    for each in items_of(node, what):
        pattern = text_of(each, what)
        if "*" in pattern[:-1]:
            raise DocumentError(f"{pattern!r}: a * can only be the last character", each.line)
        found.append(pattern)
    return found


def _topic(name: str, node: Node, line: int, owns: Ownership) -> Topic:
    if name in INTERNAL_TOPICS:
        raise DocumentError(
            f"topic {name} belongs to the brokers", line, "`headrace topic` and `headrace config` change it"
        )
    _require_owned(owns.topic(name), f"topic {name}", Kind.TOPICS, line)
    if isinstance(node, Text) and node.is_null:
        return Topic(None, None, {})
    fields = Fields(node, "a topic", ("partitions", "replicas", "settings"))
    settings = {
        each: setting(each, value, at)
        for each, value, at in named(fields.node("settings"), f"settings of topic {name}")
    }
    return Topic(fields.count("partitions"), fields.count("replicas"), settings)


def _links(top: Fields, owns: Ownership) -> dict[str, Link]:
    topics = {name for name, _, _ in named(top.node("topics"), "topics")}
    found = {}
    for name, node, line in named(top.node("links"), "links"):
        _require_owned(owns.link(name), f"link {name}", Kind.LINKS, line)
        if name in topics:
            raise DocumentError(
                f"{name} is a topic and a link here", line, "a link has its topic: take it out of topics"
            )
        found[name] = link_of(name, node, setting)
    return found


def setting(name: str, node: Node, line: int) -> str:
    if name == FORK:
        raise DocumentError(
            f"{name} says what a topic was made as", line, "`headrace topic fork` makes a fork"
        )
    if name in OF_MOVES:
        raise DocumentError(f"{name} belongs to replicas that move", line, "leave the line out")
    if isinstance(node, Items):
        return ",".join(text_of(each, name) for each in node.items)
    if not isinstance(node, Text):
        raise DocumentError(f"{name} is one value, or a list of them", node.line)
    if node.is_null:
        raise DocumentError(f"{name} has no value", line, "leave the line out and the default counts")
    return written(node.text, is_plain=node.is_plain)


def _user(name: str, node: Node, line: int, owns: Ownership) -> User:
    _require_owned(owns.user(name), f"user {name}", Kind.USERS, line)
    if isinstance(node, Text) and node.is_null:
        return User(DEFAULT_MECHANISMS, None)
    fields = Fields(node, "a user", ("password", "mechanisms"))
    mechanisms: dict[ScramMechanism, int] = {}
    for mechanism, value, at in named(fields.node("mechanisms"), "mechanisms"):
        known = next((each for each in ScramMechanism if each.value == mechanism), None)
        if known is None:
            names = " and ".join(each.value for each in ScramMechanism)
            raise DocumentError(f"{mechanism!r} is not a mechanism; there are {names}", at)
        mechanisms[known] = count_of(
            value, f"{mechanism}: iterations", at_least=MIN_ITERATIONS, at_most=MAX_ITERATIONS
        )
    password = fields.entries.get("password")
    return User(mechanisms or DEFAULT_MECHANISMS, None if password is None else _password(password))


def _password(node: Node) -> PasswordSource:
    if isinstance(node, Text):  # perhaps a password, so it is not repeated
        raise DocumentError(
            "a password never stands in this file",
            node.line,
            "write `password: {env: NAME}` or `{file: PATH}`",
        )
    fields = Fields(node, "password", ("env", "file"))
    if len(fields.entries) != 1:
        raise DocumentError("a password comes from env or from file, one of them", node.line)
    (kind,) = fields.entries
    return PasswordSource(kind, text_of(fields.entries[kind], kind))


def _rules(node: Node | None, owns: Ownership) -> list[AclRule]:
    found: list[AclRule] = []
    for each in () if node is None else items_of(node, "acls"):
        fields = Fields(each, "a rule", _RULE_FIELDS)
        entry: dict[str, object] = {
            name: fields.flag(name) if name == "prefix" else text_of(value, name)
            for name, value in fields.entries.items()
        }
        try:
            rules = rules_of_entry(entry)
        except InvalidRequest as error:
            hint = error.fields if isinstance(error, NotARule) else ""
            raise DocumentError(str(error), each.line, hint) from None
        for rule in rules:
            _require_owned(
                owns.principal(rule.principal), f"a rule of {rule.principal}", Kind.ACLS, each.line
            )
        found.extend(rules)
    return found


def _quotas(node: Node | None, owns: Ownership) -> dict[Entity, dict[str, float]]:
    found: dict[Entity, dict[str, float]] = {}
    defaults = tuple(f"{each}-default" for each in _ENTITY_FIELDS)
    for each in () if node is None else items_of(node, "quotas"):
        fields = Fields(each, "a quota", (*_ENTITY_FIELDS, *defaults, *QUOTAS))
        entity = _entity(fields)
        words = words_of(entity)
        if entity in found:
            raise DocumentError(f"quotas of {words} stand here a second time", each.line)
        _require_owned(owns.quota(entity), f"a quota of {words}", Kind.QUOTAS, each.line)
        found[entity] = {name: _quota(name, fields.entries[name]) for name in QUOTAS if name in fields}
        if not found[entity]:
            raise DocumentError(f"{words} has no quota; there are {', '.join(QUOTAS)}", each.line)
    return found


def _entity(fields: Fields) -> Entity:
    parts: list[tuple[str, str | None]] = []
    for kind in _ENTITY_FIELDS:
        name, is_default = fields.text(kind), fields.flag(f"{kind}-default")
        if name is not None and is_default:
            raise DocumentError(f"{kind} and {kind}-default exclude each other", fields.line)
        if name is not None or is_default:
            parts.append((kind, name))
    if not parts:
        raise DocumentError("say whose quota: user, client-id, both, or ip; or a default", fields.line)
    if len(parts) > 1 and any(kind == IP for kind, _ in parts):
        raise DocumentError("an address cannot be combined with a user or a client id", fields.line)
    return tuple(sorted(parts))


def _quota(name: str, node: Node) -> float:
    try:
        return quota_value(name, text_of(node, name))
    except ValueError as error:
        raise DocumentError(str(error), node.line) from None


def _owned_subject(name: str, node: Node, line: int, owns: Ownership) -> Subject:
    _require_owned(owns.subject(name), f"schema {name}", Kind.SCHEMAS, line)
    return subject_of(name, node)


def _owned_connector(name: str, node: Node, line: int, owns: Ownership) -> dict[str, str]:
    _require_owned(owns.connector(name), f"connector {name}", Kind.CONNECTORS, line)
    return connector_of(name, node)


def _require_owned(is_owned: bool, what: str, kind: Kind, line: int) -> None:
    if not is_owned:
        raise DocumentError(
            f"{what} is not among what the file owns", line, f"add it to `owns: {kind.value}`, or take it out"
        )
