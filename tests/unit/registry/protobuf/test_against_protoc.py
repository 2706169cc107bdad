"""Files of Google's that protoc compiled: our parser must find in them what protoc found."""

from __future__ import annotations

import importlib
from pathlib import Path

import google.api
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import Message

from headrace.registry.protobuf.linking import link, resolved
from headrace.registry.protobuf.parser import parse_file
from headrace.registry.protobuf.rendering import render

_ROOT = Path(next(iter(google.api.__path__))).parent.parent
#: One file was compiled under another name than it has.
_RENAMED = "google/longrunning/operations_proto.proto"
_TEXTS = {str(path.relative_to(_ROOT)): path.read_text() for path in _ROOT.glob("google/**/*.proto")}
_FILES = sorted(_TEXTS.keys() - {_RENAMED})


def _others(name: str) -> dict[str, str]:
    """What the file may import."""
    return {other: text for other, text in _TEXTS.items() if other != name}


def _bare(message: Message) -> None:
    """Without what our parser passes over on purpose: options that are not of the language itself."""
    message.DiscardUnknownFields()
    for field, value in message.ListFields():
        if field.is_extension:
            message.ClearExtension(field)
        elif field.name == "json_name":
            message.ClearField("json_name")
        elif field.message_type is not None:
            if field.name == "options":
                _bare(value)
                if not value.ListFields():
                    message.ClearField("options")
            else:
                for item in value if field.is_repeated else (value,):
                    _bare(item)


def _compiled(name: str) -> FileDescriptorProto:
    module = importlib.import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    file = FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    _bare(file)
    return file


def test_there_are_files_to_compare() -> None:
    assert len(_FILES) > 50


@pytest.mark.parametrize("name", _FILES)
def test_parses_as_protoc_does(name: str) -> None:
    file = resolved(link(parse_file(_TEXTS[name], name), _others(name)))
    _bare(file)
    assert file == _compiled(name)


@pytest.mark.parametrize("name", _FILES)
def test_what_is_rendered_parses_to_the_same(name: str) -> None:
    expected = _compiled(name)
    parsed = parse_file(render(expected), name)
    file = resolved(link(parsed, _others(name)))
    _bare(file)
    assert file == expected
