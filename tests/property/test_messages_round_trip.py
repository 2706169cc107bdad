"""Every message and stored record, in every version: what is written is read again, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.errors import UnsupportedVersion
from headrace.protocol.message import Message
from headrace.protocol.primitives import ProtocolError
from tests.property.drawn_messages import all_messages, draw, versions

every_message = pytest.mark.parametrize("message", all_messages(), ids=lambda message: message.__name__)
sources = st.binary(max_size=400)


def test_all_are_there() -> None:
    assert len(all_messages()) == 267


@every_message
@settings(max_examples=15, deadline=None, database=None)
@given(source=sources)
def test_round_trip(message: type[Message], source: bytes) -> None:
    for version in versions(message):
        drawn = draw(message, version, source)
        raw = drawn.to_bytes(version)
        read = message.from_bytes(memoryview(raw), version)
        assert read == drawn
        assert read.to_bytes(version) == raw


@every_message
def test_defaults_round_trip(message: type[Message]) -> None:
    for version in versions(message):
        assert message.from_bytes(message().to_bytes(version), version) == message()


@every_message
@settings(max_examples=8, deadline=None, database=None)
@given(source=sources, cut=st.integers(0, 1 << 16))
def test_anything_cut_off_or_left_over_is_refused(message: type[Message], source: bytes, cut: int) -> None:
    for version in versions(message):
        raw = draw(message, version, source).to_bytes(version)
        if raw:
            with pytest.raises(ProtocolError):
                message.from_bytes(raw[: cut % len(raw)], version)
        with pytest.raises(ProtocolError):
            message.from_bytes(raw + b"\0", version)


@every_message
@settings(max_examples=8, deadline=None, database=None)
@given(source=sources, at=st.integers(0, 1 << 16), byte=st.integers(0, 255), noise=st.binary(max_size=60))
def test_damage_is_refused_or_read_never_worse(
    message: type[Message], source: bytes, at: int, byte: int, noise: bytes
) -> None:
    for version in versions(message):
        raw = bytearray(draw(message, version, source).to_bytes(version))
        if raw:
            raw[at % len(raw)] = byte
        for data in (raw, noise):
            try:
                read = message.from_bytes(data, version)
            except ProtocolError:
                continue
            # What was taken has a meaning: it can be written, and says the same again.
            assert message.from_bytes(read.to_bytes(version), version).to_bytes(version) == read.to_bytes(
                version
            )


@every_message
def test_versions_outside_the_range_are_refused(message: type[Message]) -> None:
    for version in (message.MIN_VERSION - 1, message.MAX_VERSION + 1):
        with pytest.raises(UnsupportedVersion):
            message().to_bytes(version)
        with pytest.raises(UnsupportedVersion):
            message.from_bytes(b"", version)
