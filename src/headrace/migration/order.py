"""Which step may follow which. Each check raises ClientFailure with what is in the way and what to do."""

from __future__ import annotations

from headrace.client.errors import ClientFailure
from headrace.migration.state import Migration, Stage

BACK = "to go back is another migration, from here to there: docs/migrate.md"


def check_plan(before: Migration | None) -> None:
    if before is not None and before.has_begun:
        raise ClientFailure(
            "that file is of a migration that has begun",
            "`headrace migrate link --undo` takes back what it has made; or plan other topics with another"
            " --state",
        )


def check_link(migration: Migration) -> None:
    _check_not_promoted(migration)


def check_link_undo(migration: Migration) -> None:
    _check_not_promoted(migration)
    if migration.cutover.stage is not Stage.NOT_BEGUN:
        raise ClientFailure(
            "the cutover has begun: producers may be shut out at the source",
            "`headrace migrate cutover --undo` first",
        )


def check_prove(migration: Migration) -> None:
    _check_linked(migration)
    if migration.cutover.stage is Stage.DONE:
        raise ClientFailure(
            "the topics are promoted and go ways of their own: there is nothing to compare any more",
            "`headrace migrate report` has the last comparison",
        )


def check_groups(migration: Migration) -> None:
    _check_linked(migration)
    if not migration.group_patterns:
        raise ClientFailure(
            "the plan carries no groups", "plan again with --groups, or name them here with --groups"
        )
    if migration.cutover.stage is Stage.PROMOTING:
        raise ClientFailure(
            "the topics are being promoted",
            "`headrace migrate cutover` goes on with it; then this carries what was committed meanwhile",
        )


def check_groups_undo(migration: Migration) -> None:
    _check_not_promoted(migration)


def check_cutover(migration: Migration, *, is_unproven_allowed: bool, needs_groups: bool) -> None:
    _check_linked(migration)
    if migration.is_beyond_return:
        return
    proof = migration.proof
    if proof is not None and proof.differences:
        raise ClientFailure(
            f"the last comparison found {proof.differences} differences",
            "look at them with `headrace migrate prove`; `headrace migrate link --undo` and `link` copy anew",
        )
    if proof is None and not is_unproven_allowed:
        raise ClientFailure(
            "nobody has compared the two clusters yet",
            "`headrace migrate prove` does; --unproven goes without",
        )
    if needs_groups and migration.group_patterns and not migration.carries_groups:
        raise ClientFailure(
            "the offsets of groups are not carried yet",
            "`headrace migrate groups` does; --without-groups goes without",
        )


def check_cutover_undo(migration: Migration) -> None:
    _check_not_promoted(migration)
    if migration.cutover.stage is Stage.NOT_BEGUN:
        raise ClientFailure("the cutover has not begun: there is nothing to take back")


def next_step(migration: Migration) -> str:
    """A sentence for the end of each command."""
    if migration.cutover.stage is Stage.DONE:
        return "done; `headrace migrate report` shows it again"
    if migration.cutover.stage is not Stage.NOT_BEGUN:
        return "`headrace migrate cutover` goes on with the cutover"
    if not migration.is_linked:
        return "`headrace migrate link` makes the copies"
    if migration.proof is None:
        return "`headrace migrate prove` compares both ends"
    if migration.proof.differences:
        return "look at the differences; `headrace migrate prove` compares again"
    if migration.group_patterns and not migration.carries_groups:
        return "`headrace migrate groups` carries committed offsets"
    return "`headrace migrate cutover` is the last step, and the only one without a way back"


def _check_linked(migration: Migration) -> None:
    if not migration.is_linked:
        missing = [name for name, topic in migration.topics.items() if not topic.was_made]
        raise ClientFailure(f"not linked yet: {', '.join(missing)}", "`headrace migrate link` first")


def _check_not_promoted(migration: Migration) -> None:
    if migration.is_beyond_return:
        raise ClientFailure("the topics are promoted: that cannot be undone, and needs no copy", BACK)
