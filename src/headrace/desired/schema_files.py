"""The texts of schemas that stand in files of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from headrace.desired.document import Document, Subject

MOST_BYTES: Final = 4 * 1024 * 1024


def with_schema_files(document: Document, directory: Path) -> Document:
    """Paths begin at `directory`, where the file is that names them. Raises ValueError or OSError."""
    return replace(
        document, schemas={name: _read(name, each, directory) for name, each in document.schemas.items()}
    )


def _read(name: str, subject: Subject, directory: Path) -> Subject:
    if subject.file is None or subject.schema is None:
        return subject
    with open(directory / subject.file, "rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"schema {name}: {subject.file} has more than {MOST_BYTES:,} bytes")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ValueError(f"schema {name}: {subject.file} is not UTF-8") from None
    if not text.strip():
        raise ValueError(f"schema {name}: {subject.file} is empty")
    return subject._replace(schema=subject.schema._replace(text=text), file=None)
