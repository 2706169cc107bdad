"""Which stores may hold history, and what is said of those that may not."""

from __future__ import annotations

import pytest

from headrace.core.ports_objects import Listing
from headrace.objects.race import IF_MATCH, IF_NONE_MATCH
from headrace.objects.suitability import Suitability, examine
from tests.unit.objects import unfit_stores
from tests.unit.objects.unfit_stores import Fit

ROUNDS = 5


def examined(store: Fit) -> Suitability:
    return examine(store, "nonce", deadline_seconds=1, writers=32, rounds=ROUNDS)


@pytest.mark.parametrize("store", [Fit(), unfit_stores.LosesHalfOfTheAnswers()])
def test_a_store_that_keeps_conditions_is_fit_and_left_as_it_was(store: Fit) -> None:
    store.put("mine", b"stays", deadline_seconds=1)
    found = examined(store)
    assert found.findings == []
    assert [each.condition for each in found.races] == [IF_NONE_MATCH, IF_MATCH] * ROUNDS
    assert all(each.is_won_by_one for each in found.races)
    left = store.list("", deadline_seconds=1)
    assert isinstance(left, Listing)
    assert [each.key for each in left.objects] == ["mine"]


@pytest.mark.parametrize(
    ("store", "what", "cure"),
    [
        (unfit_stores.IgnoresConditions(), "ignores If-Match", "use a store that keeps conditional writes"),
        (
            unfit_stores.IgnoresConditions(),
            "ignores If-None-Match",
            "use a store that keeps conditional writes",
        ),
        (
            unfit_stores.ComparesAndWritesInTwoSteps(),
            "2, 2, 2, 2, 2 were told that they had won",
            "two brokers",
        ),
        (unfit_stores.LetsNobodyWin(), "nobody won a race with If-None-Match", "use a store"),
        (unfit_stores.TellsTheWrongWinner(), "another one's object is there", "use a store"),
        (
            unfit_stores.KnowsNoConditions(),
            "does not answer a write with If-Match: not implemented",
            "rights",
        ),
        (unfit_stores.HasNoTags(), "tells no ETag", "use a store"),
        (unfit_stores.Forgets(), "does not give back what was written", "use a store"),
        (unfit_stores.MayNotDelete(), "does not delete headrace-tier-check/nonce/", "s3:DeleteObject"),
        (unfit_stores.MayNotList(), "does not list its objects: 403 Forbidden", "s3:ListBucket"),
        (unfit_stores.NeverAnswersRaces(), "was not answered: no answer within 10 s", "--deadline"),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, Fit) else None,
)
def test_what_is_said_of_others(store: Fit, what: str, cure: str) -> None:
    found = examined(store)
    assert not found.is_fit
    fitting = [each for each in found.findings if what in each.what]
    assert fitting, found.findings
    assert cure in fitting[0].cure
