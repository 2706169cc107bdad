"""mirror.toml: what it means, and what is said where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.cli.mirror_init import _TEMPLATE
from headrace.spark.mirror.config import MirrorConfigError, parse

_PLACES = """
[source]
"bootstrap.servers" = "a:9092"
[target]
"bootstrap.servers" = "b:9092"
"""


def test_the_template_is_a_configuration() -> None:
    config = parse(_TEMPLATE.format(name="mirror.toml"), Path("mirror.toml"))
    assert (config.source.bootstrap, config.target.bootstrap) == ("127.0.0.1:9092", "127.0.0.1:9192")
    assert config.targets(["orders", "_internal"]) == {"orders": "orders"}
    assert config.groups is not None
    assert config.options().sink == "mirror-dr"


def test_names_come_before_patterns_and_internal_topics_are_named() -> None:
    text = f"""{_PLACES}
    [[topics]]
    pattern = "ord.*|_.*"
    exclude = ["ord-test.*"]
    target = "dr.{{topic}}"
    [[topics]]
    name = "orders"
    [[topics]]
    name = "_audit"
    """
    config = parse(text, Path("m.toml"))
    assert config.targets(["orders", "orderly", "ord-test-1", "_audit", "_x", "other"]) == {
        "orders": "orders",
        "orderly": "dr.orderly",
        "_audit": "_audit",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"source: the brokers are missing.*below \[source\]"),
        (_PLACES, "no topic is named"),
        (f'{_PLACES}[[topics]]\nname = "a"\npattern = "b"', r"m\.toml:\d+: topics\[0\]: .*either"),
        (f'{_PLACES}[[topics]]\npattern = "("', r"m\.toml:\d+: topics\[0\]\.pattern: .*regular"),
        (f'{_PLACES}[[topics]]\npattern = ".*"\ntarget = "all"', "one topic for many"),
        (f'{_PLACES}[[topics]]\nname = "a"\n[mirror]\nname = "a b"', r"mirror\.name: 'a b'"),
        (f'{_PLACES}[[topics]]\nname = "a"\n[mirror]\nexisting = "apend"', "did you mean append"),
        (f'{_PLACES}"no.such" = "x"\n[[topics]]\nname = "a"', "does not know kafka.no.such"),
    ],
)
def test_mistakes_are_told_with_their_place(text: str, said: str) -> None:
    with pytest.raises(MirrorConfigError, match=said):
        parse(text, Path("m.toml"))


def test_two_topics_do_not_go_into_one() -> None:
    config = parse(f'{_PLACES}[[topics]]\nname = "a"\ntarget = "b"\n[[topics]]\nname = "b"', Path("m.toml"))
    with pytest.raises(MirrorConfigError, match="both go into b"):
        config.targets(["a", "b"])
