"""A mirror that a worker runs: `headrace mirror run`, with the worker's place, take-over and words.

Its position is the mirror's own, under the mirror's name. So commands of `headrace mirror` and the audit read
it as they do of one that is started by hand, and either of the two fences the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from headrace.connect.api import Config, ConnectorFailure, GiveUp, Job, Position, Turns
from headrace.connect.settings import Settings
from headrace.core.errors import HeadraceError
from headrace.spark.connect.connectors.mirror_settings import SETTINGS, mirror_of, problems_of
from headrace.spark.lake.fields import Wrong

if TYPE_CHECKING:
    from headrace.spark.mirror.config import MirrorConfig
    from headrace.spark.mirror.job import Mirror
    from headrace.spark.mirror.plan import Seen, Step

_LOSS: Final = "--accept-loss"


class MirrorConnector(Job):
    settings: ClassVar[Settings] = SETTINGS
    fixed: ClassVar[str] = (
        "the position of a mirror moves with what is on the target, and offsets are translated by it, so it "
        "cannot be set. To go on behind records that are gone from the source, stop the connector, run "
        "`headrace mirror run --once --accept-loss earliest` (or latest) under the same name, and resume it. "
        "To mirror everything again, give it another mirror.name and other topics"
    )

    @classmethod
    def check(cls, config: Config) -> Mapping[str, str]:
        return problems_of(config)

    def position(self) -> Position:
        """Partitions are named as MirrorMaker names them."""
        from headrace.spark.mirror.reading import position_now

        there = asyncio.run(position_now(self._mirror()))
        found = Position()
        for (topic, partition), offset in sorted(there.offsets().items()):
            place = {"cluster": there.source, "topic": topic, "partition": partition}
            found = found.moved(place, {"offset": offset})
        return found

    def work(self, turns: Turns) -> None:
        from pyspark.errors import PySparkException

        from headrace.spark.lake.failures import short
        from headrace.spark.mirror import job

        mirror = self._mirror()

        def shown(text: str) -> str:
            """With what people do about it, and without secrets of a file that only this mirror reads."""
            text = mirror.source.conceal(mirror.target.conceal(text))
            return f"{text}\n{self._behind_losses(mirror)}" if _LOSS in text else text

        try:
            job.run(
                turns.spark,
                mirror,
                stop=turns.ending,
                told=Told(turns, mirror, shown),
                turn=turns.turn,
                patient=False,
            )
        except PySparkException as error:
            raise ConnectorFailure(shown(short(str(error)))) from None
        except HeadraceError as error:
            raise ConnectorFailure(shown(str(error))) from None

    def _mirror(self) -> MirrorConfig:
        try:
            return mirror_of(self.config)
        except Wrong as error:
            raise GiveUp(str(error)) from None

    def _behind_losses(self, mirror: MirrorConfig) -> str:
        return (
            f"This mirror is connector {self.config.name}: stop it, run that with --once and a mirror.toml "
            f'of the same source, target and topics and name = "{mirror.name}", and resume it'
        )


class Told:
    """What a round of the mirror says, for the status."""

    def __init__(self, turns: Turns, config: MirrorConfig, shown: Callable[[str], str]) -> None:
        self._turns = turns
        self._config = config
        self._shown = shown

    def __call__(self, mirror: Mirror, seen: Seen, planned: Step) -> None:
        if planned.stopped and planned.stopped.keys() >= mirror.position.topics.keys():
            return  # the mirror ends with these sentences, and called well before it would be tried at once
        topics = frozenset(topic.target for topic in mirror.position.topics.values())
        said = [text for _, text in sorted(planned.stopped.items())]
        said += [
            f"topic {name} is named, and not there on the source"
            for name in self._config.named
            if name not in seen.view.ids and name not in mirror.position.topics
        ]
        still = self._shown("\n".join(dict.fromkeys(said))) if said else None
        if planned.end and not mirror.totals.batches:
            self._turns.begun(topics, still)
        else:
            self._turns.alive(topics, still)
