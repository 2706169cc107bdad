"""How far `headrace tier scrub` is, in a file: what was verified is not read again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from headrace.client.errors import ClientFailure
from headrace.client.private_files import READABLE, write_file
from headrace.tier.scrubbing import Finding, Scrubbed

_VERSION: Final = 1


@dataclass(slots=True)
class PartitionProgress:
    verified_to: int = 0
    is_done: bool = False
    scrubbed: Scrubbed = field(default_factory=Scrubbed)


@dataclass(slots=True)
class ScrubProgress:
    bucket: str
    partitions: dict[str, PartitionProgress] = field(default_factory=dict)
    """By the prefix of their keys."""

    def of(self, prefix: str) -> PartitionProgress:
        return self.partitions.setdefault(prefix, PartitionProgress())

    def write(self, path: Path) -> None:
        document = {
            "version": _VERSION,
            "bucket": self.bucket,
            "partitions": {prefix: asdict(each) for prefix, each in self.partitions.items()},
        }
        write_file(path, json.dumps(document, indent=1).encode(), READABLE)


def read_progress(path: Path, bucket: str) -> ScrubProgress:
    """Of a scrub that was cut off; a new one if there is no file."""
    try:
        document = json.loads(path.read_bytes())
        if document["version"] != _VERSION:
            raise ValueError("another version")
        partitions = {prefix: _partition(each) for prefix, each in document["partitions"].items()}
    except FileNotFoundError:
        return ScrubProgress(bucket)
    except (ValueError, KeyError, TypeError) as error:
        raise ClientFailure(
            f"{path} is not the progress of a scrub: {error}", "name another file, or delete this one"
        ) from None
    if document["bucket"] != bucket:
        raise ClientFailure(
            f"{path} is the progress of a scrub of {document['bucket']}",
            "name another file, or delete this one to begin anew",
        )
    return ScrubProgress(bucket, partitions)


def _partition(value: dict[str, object]) -> PartitionProgress:
    fields = dict(value)
    scrubbed = dict(fields.pop("scrubbed"))  # type: ignore[call-overload]  # TypeError is caught, as the rest
    findings = [Finding(*each) for each in scrubbed.pop("findings")]
    return PartitionProgress(**fields, scrubbed=Scrubbed(**scrubbed, findings=findings))  # type: ignore[arg-type]  # as above
