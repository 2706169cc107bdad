"""Mapping rules, beside what Kafka 4.3.1 makes of the same rule and name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.errors import ConfigError
from headrace.security.mapping_rules import MappingRules, NoRuleMatches

DUKE = "CN=Duke,OU=ServiceUsers,O=Org,C=US"
CN = "RULE:^CN=(.*?),.*$/"

AS_KAFKA = [
    ("DEFAULT", DUKE, DUKE),
    (" DEFAULT ", DUKE, DUKE),
    (CN + "$1/,DEFAULT", DUKE, "Duke"),
    (CN + "$1/L,DEFAULT", DUKE, "duke"),
    (CN + "$1/U", DUKE, "DUKE"),
    ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/", DUKE, "Duke@ServiceUsers"),
    ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$5/", DUKE, "Duke@$5"),
    (CN + "$12/", DUKE, "Duke2"),
    (CN + "$01/", DUKE, "Duke"),
    (CN + "$0x/", DUKE, DUKE + "x"),
    (CN + "$2/", DUKE, "$2"),
    ("RULE:^CN=.*$/x$0/", DUKE, "x" + DUKE),
    ("RULE:(.*)/$1x/", DUKE, DUKE + "xx"),
    ("RULE:CN=(.*?)/<$1>/", DUKE, "<>Duke,OU=ServiceUsers,O=Org,C=US"),
    ("RULE:.*?/-/", "CN=a", "-C-N-=-a-"),
    ("RULE:.*/x/", DUKE, "xx"),
    (r"RULE:^CN=(\w+),.*$/a\/b\$1$1/", DUKE, "a/b$1Duke"),
    (r"RULE:^CN=(.*?)\/x$/$1/", "CN=q/x", "q"),
    ("RULE:^CN=(?<n>.*?),.*$/${n}/", DUKE, "Duke"),
    (CN + "$1/L , RULE:.*/z/", DUKE, "duke"),
    ("RULE:x/y/,RULE:.*/z/", DUKE, "zz"),
    (" RULE:x/y/ ,,  DEFAULT", DUKE, DUKE),
    (CN + "$1, $1/", DUKE, "Duke, Duke"),
    (CN + " $1 /", DUKE, " Duke "),
    ("RULE:^(CN=)?(OU=x)?.*$/<$2>/", DUKE, "<>"),
    (CN + "$1/U", "CN=straße,O=x", "STRASSE"),
    (CN + "$1/L", "CN=ΑΣ İ,O=x", "ας i̇"),
    ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L", "CN=Duke.X,O=x", "duke.x"),
    ("RULE:(?:(^|,)[A-Z]+=[^,]*)+/-/", DUKE, "-"),
    (r"RULE:^CN=(.*?)\\,.*$/$1/", r"CN=Acme\, Inc,O=x", "Acme"),
    (r"RULE:^CN=(.*),O=x$/$1/", r"CN=Acme\, Inc,O=x", r"Acme\, Inc"),
]


@pytest.mark.parametrize(("rules", "name", "expected"), AS_KAFKA)
def test_a_name_is_mapped_as_by_kafka(rules: str, name: str, expected: str) -> None:
    assert MappingRules.parse(rules).principal_name(name) == expected


@pytest.mark.parametrize(
    "rules", ["RULE:^CN=(.*?),OU=Other.*$/$1/U", "RULE:CN=/x/", "RULE: ^CN=.*$/x/", "RULE:/x/"]
)
def test_a_name_that_no_rule_matches_wholly_is_nobodys(rules: str) -> None:
    with pytest.raises(NoRuleMatches, match=r"No rule of ssl\.principal\.mapping\.rules"):
        MappingRules.parse(rules).principal_name(DUKE)


@pytest.mark.parametrize(
    "rules",
    [
        *("default", "DEFAUL", "DEFAULT/L", "DEFAULT RULE:x/y/", "rule:^CN/x/"),
        *("RULE:x", "RULE:x/y", r"RULE:a\/$1/", "RULE:x/y/X", "RULE:x/y/LU", "RULE:a(/x/"),
        *(CN + "a$/", CN + "a$x/", CN + "${n}/", CN + "${n/"),
    ],
)
def test_a_rule_that_kafka_refuses_is_refused(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"^ssl\.principal\.mapping\.rules: "):
        MappingRules.parse(rules)


@pytest.mark.parametrize("rules", ["", " , ", "RULE:^CN=.*$/$1/"])
def test_rules_that_would_fail_every_connection_are_refused_at_start(rules: str) -> None:
    with pytest.raises(ConfigError):
        MappingRules.parse(rules)


@pytest.mark.parametrize("reference", ["$4$5", r"\$5"])
def test_references_beyond_the_groups_are_literal(reference: str) -> None:
    """Kafka fails such a connection, by an error in its own escaping."""
    assert MappingRules.parse(CN + reference + "/").principal_name(DUKE) == reference.replace("\\", "")


@pytest.mark.parametrize(
    "pattern",
    [
        *("(?=CN).*", r"(.)\1", "a*+", "(?>a)", "(?<!x)y"),
        *(
            "[a[bc]]",
            "[a-z&&[^b]]",
            "[[:alpha:]]+",
            "(?U)x",
            "(?i-U)x",
            r"\v",
            r"\C",
            r"\Qx\E",
            "[]a]",
            "[^]a]",
        ),
        *("x{1,1000}{1,1000}", "x" * 5000),
    ],
)
def test_a_pattern_that_re2_lacks_or_understands_otherwise_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="linear time"):
        MappingRules.parse(f"RULE:{pattern}/x/")


@pytest.mark.parametrize("pattern", [r"[\[a]+", r"[^,]*", r"\[a\]", "[&]*", r"(?i)cn=.*", r"\bCN.*"])
def test_what_both_understand_alike_is_taken(pattern: str) -> None:
    assert len(MappingRules.parse(f"RULE:{pattern}/x/").rules) == 1


def test_a_pattern_that_would_take_ages_elsewhere_is_quick() -> None:
    rules = MappingRules.parse("RULE:(a|a)*(a|a)*(a|a)*b/x/")
    with pytest.raises(NoRuleMatches):
        rules.principal_name("a" * 1024)


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", "x" * 1025),
        ("DEFAULT", "ä" * 513),
        ("RULE:.*?/xxxxxxxxxx/", "y" * 200),
        ("DEFAULT", ""),
        (CN + "/", DUKE),
        *(("RULE:.*/x/,DEFAULT", f"CN=a{each}b") for each in "\n\r\x85\u2028\u2029"),
    ],
)
def test_a_name_that_is_too_long_or_empty_or_has_line_breaks_is_nobodys(rules: str, name: str) -> None:
    with pytest.raises(NoRuleMatches):
        MappingRules.parse(rules).principal_name(name)


@given(st.text(max_size=60))
def test_any_text_is_rules_or_refused(text: str) -> None:
    try:
        rules = MappingRules.parse(text)
    except ConfigError:
        return
    assert rules.rules


@given(st.text(st.sampled_from("RULE:DFAT/,\\$1(a.*)LU{} "), max_size=40))
def test_rules_that_are_taken_map_or_refuse_any_name(text: str) -> None:
    try:
        rules = MappingRules.parse(f"RULE:{text}/$0/,DEFAULT")
    except ConfigError:
        return
    assert rules.principal_name("aRULE") != ""
