"""table.toml: which topics are kept as tables of latest values, and what is derived from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from headrace.core.errors import HeadraceError
from headrace.spark.decoding.formats import Decoding, DecodingRefused, Format
from headrace.spark.lake import toml_file
from headrace.spark.lake.config import (
    LakeConfig,
    check_other_subjects,
    location_of,
    maintenance_of,
    schema_of,
)
from headrace.spark.lake.fields import Section, Wrong
from headrace.spark.lake.kafka_section import kafka_of

TABLE_FORMATS: Final = ("delta", "iceberg")
_LOSSES: Final = ("stop", "continue")
_SECTIONS: Final = ("kafka", "store", "tables", "indexes", "views", "maintenance", "spark")
_SAFE: Final = re.compile(r"[A-Za-z0-9-][A-Za-z0-9._-]*")


class TableConfigError(HeadraceError):
    """Says the file, the line, the key and what to write instead."""


class KeyFormat(StrEnum):
    """How the key of a record is read. `bytes` keeps it; the last three give a struct."""

    BYTES = "bytes"
    STRING = "string"
    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"


class Order(StrEnum):
    """Which of two records of one key is the later.

    By partition and offset: within a partition that is the order of the log. By timestamp first, for keys
    that move between partitions, as they do when a topic gets more of them.
    """

    OFFSET = "offset"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True)
class IndexSpec:
    """The keys of a table by other columns: one row for each row of the table that has them."""

    name: str
    columns: tuple[str, ...]
    include: tuple[str, ...] = ()


@dataclass(frozen=True)
class ViewSpec:
    """Aggregates of the table's rows, one row for each value of an index's columns."""

    name: str
    index: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class TableSpec:
    """One [[tables]] with all that is derived from it."""

    name: str
    topic: str
    decoding: Decoding
    dead_letters: str
    key: KeyFormat = KeyFormat.BYTES
    key_decoding: Decoding | None = None
    key_fields: tuple[str, ...] = ()
    deleted: str | None = None
    order: Order = Order.OFFSET
    keep_value: bool = False
    indexes: tuple[IndexSpec, ...] = ()
    views: tuple[ViewSpec, ...] = ()

    @property
    def key_columns(self) -> tuple[str, ...]:
        return self.key_fields or ("key",)


@dataclass(frozen=True)
class TableConfig:
    store: LakeConfig
    """Brokers, place and format: the same settings as the lake's, without its topics."""
    tables: tuple[TableSpec, ...]

    @property
    def bootstrap(self) -> str:
        return self.store.bootstrap

    def table(self, name: str) -> TableSpec:
        for spec in self.tables:
            if spec.name == name:
                return spec
        known = ", ".join(spec.name for spec in self.tables)
        raise TableConfigError(f"the configuration has no table {name}; it has {known}")


def load(path: Path) -> TableConfig:
    return parse(toml_file.read(path, TableConfigError, command="headrace table init"), path)


def parse(text: str, path: Path) -> TableConfig:
    """Paths in the file are relative to it."""
    return toml_file.parse(text, path, _SECTIONS, _config, TableConfigError)


def _config(document: dict[str, object], directory: Path) -> TableConfig:
    return TableConfig(_store(document, directory), _tables(document, directory))


def _store(document: dict[str, object], directory: Path) -> LakeConfig:
    store = Section(document, "store")
    table_format = store.choice("format", TABLE_FORMATS, "delta")
    location = location_of(store.text("location"), directory)
    state = location_of(store.text("state"), directory)
    if location is None and table_format != "iceberg":
        raise Wrong(("store",), 'Delta tables are directories; write location = "/data/tables" below [store]')
    if state is None and location is None:
        raise Wrong(("store",), 'checkpoints need a place; write state = "/data/state" below [store]')
    config = LakeConfig(
        kafka=kafka_of(document, directory),
        topics=(),
        format=table_format,
        location=location,
        catalog=store.text("catalog") or "iceberg",
        namespace=store.text("namespace") or "tables",
        state=state or f"{location}/_headrace",
        trigger_seconds=store.seconds("trigger", 10.0),
        discover_seconds=store.seconds("discover", 30.0),
        on_data_loss=store.choice("on_data_loss", _LOSSES, "stop"),
        max_records_per_batch=store.count("max_records_per_batch") or 10_000_000,
        min_partitions=store.count("min_partitions"),
        parallel_topics=store.count("parallel_tables") or 4,
        group=store.text("group"),
        maintenance=maintenance_of(document),
        spark=Section(document, "spark").texts(),
    )
    store.end()
    return config


def _listed(document: dict[str, object], name: str) -> list[Section]:
    found = document.get(name, [])
    if not isinstance(found, list):
        raise Wrong((name,), f"is not a list of sections; write [[{name}]], with two brackets")
    return [Section({name: each}, name, number) for number, each in enumerate(found)]


def _tables(document: dict[str, object], directory: Path) -> tuple[TableSpec, ...]:
    sections = _listed(document, "tables")
    if not sections:
        raise Wrong(("tables",), 'no table is named; write [[tables]] and below it topic = "..."')
    taken: dict[str, str] = {}
    indexes: dict[str, list[IndexSpec]] = {}
    views: dict[str, list[ViewSpec]] = {}
    raw = [_table(section, directory, taken) for section in sections]
    tables = {spec.name for spec in raw}
    owners: dict[str, str] = {}
    for section in _listed(document, "indexes"):
        index, table = _index(section, taken)
        _known(section, "table", table, tables)
        owners[index.name] = table
        indexes.setdefault(table, []).append(index)
    for section in _listed(document, "views"):
        view = _view(section, taken)
        _known(section, "index", view.index, owners)
        views.setdefault(owners[view.index], []).append(view)
    return tuple(
        _with_derived(spec, tuple(indexes.get(spec.name, ())), tuple(views.get(spec.name, ())))
        for spec in raw
    )


def _with_derived(spec: TableSpec, indexes: tuple[IndexSpec, ...], views: tuple[ViewSpec, ...]) -> TableSpec:
    return replace(spec, indexes=indexes, views=views)


def _known(section: Section, key: str, name: str, known: Mapping[str, str] | set[str]) -> None:
    if name not in known:
        raise Wrong(
            (*section.path, key), f"there is no {key} {name}{toml_file.meant(name, tuple(sorted(known)))}"
        )


def _name(section: Section, key: str, name: str, taken: dict[str, str]) -> str:
    """Every table of a file has a name of its own, dead letters too; case does not tell them apart."""
    if not _SAFE.fullmatch(name):
        raise Wrong(
            (*section.path, key),
            f"{name!r} cannot be the name of a table; write letters, digits, dots, dashes and underscores, "
            "and begin with no underscore and no dot",
        )
    if name.lower() in taken:
        raise Wrong((*section.path, key), f"{name} is already {taken[name.lower()]}; give one another name")
    taken[name.lower()] = f"the name of {section.path[0]}[{section.path[1]}]"
    return name


def _required(section: Section, key: str, example: str) -> str:
    found = section.text(key)
    if found is None:
        raise Wrong(section.path, f"{key} is missing; write {key} = {example}")
    return found


def _table(section: Section, directory: Path, taken: dict[str, str]) -> TableSpec:
    topic = _required(section, "topic", '"orders"')
    name = _name(section, "name", section.text("name") or topic, taken)
    dead_letters = section.text("dead_letters") or f"{name}_dead_letters"
    key_fields = section.names("key_fields")
    decoding = _decoding(section, directory, f"{topic}-value")
    key, key_decoding = _key(section, directory, topic)
    spec = TableSpec(
        name=name,
        topic=topic,
        decoding=decoding,
        dead_letters=_name(section, "dead_letters", dead_letters, taken),
        key=key,
        key_decoding=key_decoding,
        key_fields=key_fields,
        deleted=section.text("deleted"),
        order=Order(section.choice("order", tuple(Order), "offset")),
        keep_value=section.flag("keep_value", False),
    )
    section.end()
    if key_fields and decoding.format is Format.BYTES:
        raise Wrong(
            (*section.path, "key_fields"), 'bytes have no fields; say what values are: format = "json", ...'
        )
    if key_fields and key is not KeyFormat.BYTES:
        raise Wrong((*section.path, "key_fields"), "key and key_fields both say what the key is; keep one")
    return spec


def _decoding(section: Section, directory: Path, subject: str) -> Decoding:
    registry = section.text("registry")
    given = section.text("subject")
    others = section.names("other_subjects")
    check_other_subjects(section, registry, others)
    try:
        return Decoding(
            Format(section.choice("format", tuple(Format), "bytes")),
            schema=schema_of(section, directory),
            registry=registry,
            subject=given or (subject if registry is not None else None),
            version=section.count("version"),
            other_subjects=others,
            message=section.text("message"),
        )
    except DecodingRefused as refused:
        raise Wrong((*section.path, "format"), str(refused)) from None


def _key(section: Section, directory: Path, topic: str) -> tuple[KeyFormat, Decoding | None]:
    key = KeyFormat(section.choice("key", tuple(KeyFormat), "bytes"))
    schema = schema_of(section, directory, "key_schema")
    registry = section.text("key_registry")
    subject, message = section.text("key_subject"), section.text("key_message")
    if key in (KeyFormat.BYTES, KeyFormat.STRING):
        if schema is not None or registry is not None:
            raise Wrong((*section.path, "key"), f"a key of {key} needs neither schema nor registry")
        return key, None
    if registry is not None:
        subject = subject or f"{topic}-key"
    try:
        return key, Decoding(
            Format(key.value), schema=schema, registry=registry, subject=subject, message=message
        )
    except DecodingRefused as refused:
        raise Wrong((*section.path, "key"), f"the key: {refused}") from None


def _index(section: Section, taken: dict[str, str]) -> tuple[IndexSpec, str]:
    table = _required(section, "table", '"orders", the name of a [[tables]]')
    columns = section.names("columns")
    if not columns:
        raise Wrong(section.path, 'columns is missing; write columns = ["customer"]')
    name = _name(section, "name", section.text("name") or f"{table}_by_{'_'.join(columns)}", taken)
    spec = IndexSpec(name, columns, section.names("include"))
    section.end()
    return spec, table


def _view(section: Section, taken: dict[str, str]) -> ViewSpec:
    index = _required(section, "index", '"orders_by_customer", the name of an [[indexes]]')
    name = _name(section, "name", _required(section, "name", '"customers"'), taken)
    columns = section.names("columns")
    if not columns:
        raise Wrong(section.path, 'columns is missing; write columns = ["count(*) AS orders"]')
    spec = ViewSpec(name, index, columns)
    section.end()
    return spec
