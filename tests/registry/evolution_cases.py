"""The table of schema evolution in the three formats.

The unit tests put it to the rules, the tests of the server to its REST interface, and `python -m
tests.registry.apicurio` to another maker's registry.
"""

from __future__ import annotations

from tests.registry.evolution.avro import AVRO
from tests.registry.evolution.case import Case
from tests.registry.evolution.json_schema import JSON
from tests.registry.evolution.protobuf import PROTOBUF

CASES: list[Case] = [*AVRO, *JSON, *PROTOBUF]
