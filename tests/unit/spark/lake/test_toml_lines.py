from __future__ import annotations

from headrace.spark.lake.toml_lines import key_lines, line_of

_TEXT = '''# a comment
[kafka]
"bootstrap.servers" = "a"
ssl.key = "b"

[[topics]]
name = "a"
schema = """
name = "not a key"
"""
[[topics]]
name = "b" # with = in a comment
'''


def test_keys_are_found_in_their_tables() -> None:
    lines = key_lines(_TEXT)
    assert lines["kafka", "bootstrap.servers"] == 3
    assert lines["kafka", "ssl", "key"] == 4
    assert lines["topics", 0, "name"] == 7
    assert lines["topics", 1, "name"] == 12


def test_a_key_that_is_not_there_is_looked_for_where_it_would_stand() -> None:
    lines = key_lines(_TEXT)
    assert line_of(lines, ("topics", 1, "format")) == 11
    assert line_of(lines, ("lake", "format")) is None
