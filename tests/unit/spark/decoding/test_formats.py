"""What may be written for a decoding where a frame is asked for."""

from __future__ import annotations

import pytest

from headrace.spark.decoding.formats import Decoding, DecodingRefused, Format, decoding_of


def test_columns_alone_are_those_of_json() -> None:
    assert decoding_of("id bigint, name string") == Decoding(Format.JSON, "id bigint, name string")


def test_what_needs_no_reading_stays() -> None:
    avro = Decoding(Format.AVRO, "{}")
    assert decoding_of(avro) is avro
    assert decoding_of(None) is None
    assert decoding_of("bytes") == Decoding(Format.BYTES)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("json", 'the columns alone, decoding="id bigint, name string"'),
        ("avro", r'Decoding\("avro", schema\), with the JSON'),
        ("protobuf", r"text of the \.proto file.*registry="),
    ],
)
def test_a_format_alone_is_refused_with_what_it_lacks(name: str, said: str) -> None:
    with pytest.raises(DecodingRefused, match=said):
        decoding_of(name)
