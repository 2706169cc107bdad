"""Which schemas a batch needs, asked of the registry when the batch is about to be decoded.

No record has to be looked at for it. Whoever writes registers first, so the schemas of all records of a batch
are listed under their subject before the batch's last offset is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headrace.core.errors import HeadraceError
from headrace.spark.decoding.formats import Decoding, DecodingRefused, Format
from headrace.spark.decoding.registry_client import (
    RegisteredSchema,
    RegistryClient,
    RegistryRefused,
    client,
)

_TYPES: Final = {Format.JSON: "JSON", Format.AVRO: "AVRO", Format.PROTOBUF: "PROTOBUF"}


@dataclass(frozen=True)
class Registered:
    #: What the columns follow.
    reader: RegisteredSchema
    #: Everything that a record may have been written with, by id.
    writers: Mapping[int, RegisteredSchema]


def registered(decoding: Decoding) -> Registered:
    assert decoding.registry is not None
    assert decoding.subject is not None
    asked = client(decoding.registry)
    version = decoding.version or asked.latest_version(decoding.subject)
    reader = _checked(asked, decoding, asked.version(decoding.subject, version))
    writers = {reader.id: reader}
    for subject in (decoding.subject, *decoding.other_subjects):
        for each in asked.versions(subject):
            if (subject, each) != (decoding.subject, version):
                schema = _checked(asked, decoding, asked.version(subject, each))
                writers[schema.id] = schema
    return Registered(reader, writers)


class SchemaUnusable(HeadraceError):
    """A record names a schema by which it cannot be read. The text is its problem."""


def met(registry: str, number: int, wanted: Format) -> RegisteredSchema:
    """The schema that a record names and that was not listed. SchemaUnusable where there is no such one.

    A registry that does not answer, or wants another password, raises its own errors: no record is to blame.
    """
    try:
        found = client(registry).by_id(number)
    except RegistryRefused as refused:
        if refused.is_about_us:
            raise
        raise SchemaUnusable(f"schema id {number} cannot be had: {refused}") from None
    if found is None:
        raise SchemaUnusable(f"schema id {number} is not known to the registry")
    if found.type != _TYPES[wanted]:
        raise SchemaUnusable(f"schema id {number} is of type {found.type}, not {_TYPES[wanted]}")
    return found


def _checked(asked: RegistryClient, decoding: Decoding, schema: RegisteredSchema) -> RegisteredSchema:
    wanted = _TYPES[decoding.format]
    if schema.type != wanted:
        raise DecodingRefused(
            f"{decoding.subject} at {asked.address} has a schema of type {schema.type}, not {wanted}"
        )
    return schema
