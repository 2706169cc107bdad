"""What is to be decoded, and by which schema: a value that a configuration file or a caller fills in."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from pyspark.sql.types import StructType

from headrace.core.errors import HeadraceError


class DecodingRefused(HeadraceError):
    """The description cannot be carried out as it stands. Never raised because of a record."""


class Format(StrEnum):
    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    BYTES = "bytes"


@dataclass(frozen=True)
class Decoding:
    """A schema is given, or a registry knows it; bytes need neither.

    `schema` depends on the format. JSON: a StructType, its DDL ("id bigint, name string"), or a JSON Schema
    document. Avro: the schema's JSON. Protobuf: the text of a .proto file, or a FileDescriptorSet as bytes;
    `message` then names the message, unless there is only one.

    With `registry` (its URL) values are in Confluent's wire format. `subject` says which schema the columns
    follow, and `version` pins one; without it they follow the latest, anew in each batch. `other_subjects`
    are further ones that a record's schema may be registered under, as where subjects are named by record.
    """

    format: Format
    schema: str | bytes | StructType | None = None
    registry: str | None = field(default=None, repr=False)
    """May hold a user and a password, so nothing shows it."""
    subject: str | None = None
    version: int | None = None
    other_subjects: tuple[str, ...] = ()
    message: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "format", Format(self.format))
        if self.format is Format.BYTES:
            if self.schema is not None or self.registry is not None:
                raise DecodingRefused("bytes are kept as they are: give neither schema nor registry")
            return
        if (self.schema is None) == (self.registry is None):
            raise DecodingRefused(f"{self.format} needs a schema or a registry, and not both")
        if self.registry is not None and self.subject is None:
            raise DecodingRefused("a registry needs a subject, for example the topic's name and '-value'")
        if self.registry is None and (self.subject is not None or self.version is not None):
            raise DecodingRefused("subject and version mean something only with a registry")
        if isinstance(self.schema, StructType) and self.format is not Format.JSON:
            raise DecodingRefused(f"{self.format} needs its own kind of schema, not Spark's")


def decoding_of(given: Decoding | str | None) -> Decoding | None:
    """A text names the columns of JSON, as Spark's `from_json` has them; `bytes` is a format without any."""
    if given is None or isinstance(given, Decoding):
        return given
    if given == Format.BYTES:
        return Decoding(Format.BYTES)
    if given in set(Format):
        kinds = {
            Format.JSON: 'the columns alone, decoding="id bigint, name string"',
            Format.AVRO: f'decoding=Decoding("{given}", schema), with the JSON of the schema',
            Format.PROTOBUF: f'decoding=Decoding("{given}", schema), with the text of the .proto file',
        }
        raise DecodingRefused(
            f"decoding={given!r} names no schema: say {kinds[Format(given)]}; or where a registry has it, "
            f'decoding=Decoding("{given}", registry="http://host:8081", subject="orders-value")'
        )
    return Decoding(Format.JSON, given)
