"""Another cluster, as this broker copies from it: who leads what there, and a fetcher for each of its
leaders."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.broker.linking.fetcher import LinkFetcher
from headrace.broker.linking.host import LinkHost
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.offsets import EARLIEST, LATEST, list_offsets
from headrace.client.security import PLAINTEXT, ClientSecurity
from headrace.core.errors import ConfigError, HeadraceError
from headrace.core.ids import TopicPartition
from headrace.core.tasks import spawn
from headrace.network.direct_dialer import DirectDialer
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.fetch_request import FetchRequest
from headrace.protocol.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from headrace.protocol.replica_fetch_codec import FIRST_WITH_TOPIC_IDS, VERSION

if TYPE_CHECKING:
    from headrace.core.ports_network import Link
    from headrace.replication.linking import LinkedPartition

REFRESH_SECONDS: Final = 5.0
"""How soon partitions that are added over there are added here."""
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 2.0
REQUEST_SECONDS: Final = 10.0
DIAL_SECONDS: Final = 3.0
CLIENT_ID: Final = "headrace-link"
MISSING: Final = (int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), int(ErrorCode.UNKNOWN_TOPIC_ID))


class SourceKey(NamedTuple):
    bootstrap: str
    client_config: str | None


class Source:
    def __init__(
        self,
        host: LinkHost,
        key: SourceKey,
        on_topics: Callable[[Source, Mapping[str, int]], None],
        on_stopped: Callable[[LinkedPartition], None],
    ) -> None:
        """`on_topics`: told the names of topics over there, and how many partitions each has."""
        self.key = key
        self.error: str | None = None
        """Why nothing can be asked over there, for people."""
        self.topic_errors: dict[str, str] = {}
        self._host = host
        self._on_topics = on_topics
        self._on_stopped = on_stopped
        self._members: dict[LinkedPartition, None] = {}
        self._fetchers: dict[int, LinkFetcher] = {}
        self._cluster: Cluster | None = None
        self._dialer = DirectDialer(
            receive_buffer_bytes=host.runtime.static_config.replica_socket_receive_buffer_bytes
        )
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._ending: dict[asyncio.Task[None], None] = {}

    @property
    def is_idle(self) -> bool:
        return not self._members

    def start(self) -> None:
        name = f"link to {self.key.bootstrap}"
        self._task = spawn(name, self._run(), self._host.runtime.loop)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        for broker_id in list(self._fetchers):
            self._end(broker_id)
        if self._ending:
            await asyncio.wait(list(self._ending))
        if self._cluster is not None:
            await self._cluster.close()

    # --- who takes part ---------------------------------------------------------------------------------

    def add(self, linked: LinkedPartition) -> None:
        self._members[linked] = None
        self.hurry()

    def remove(self, linked: LinkedPartition) -> None:
        linked.close()
        if self._members.pop(linked, self) is None:
            fetcher = self._fetchers.get(linked.source_leader)
            if fetcher is not None:
                fetcher.unfollow(linked)

    def hurry(self) -> None:
        """Something over there is not as the last metadata said."""
        self._wake.set()

    # --- metadata ---------------------------------------------------------------------------------------

    async def _run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            self._wake.clear()
            try:
                cluster = await self.cluster()
                names = list(dict.fromkeys(linked.source_topic for linked in self._members))
                self._apply(await cluster.metadata(names))
                self.error = None
                pause = FIRST_PAUSE
            except (HeadraceError, OSError) as error:
                if str(error) != self.error:
                    self._host.runtime.log.warning(
                        "source of links not reached", source=self.key.bootstrap, error=str(error)
                    )
                self.error = str(error)
                for linked in self._members:
                    linked.on_source_lost()
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            try:
                async with asyncio.timeout(REFRESH_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(FIRST_PAUSE)  # what is missing now may come with the next answer

    async def cluster(self) -> Cluster:
        if self._cluster is not None:
            return self._cluster
        security = await self._host.runtime.loop.run_in_executor(None, self._read_security)
        if self._cluster is None:  # whoever copies groups may have asked at the same time
            self._cluster = Cluster(
                self.key.bootstrap,
                client_id=CLIENT_ID,
                connect_timeout=DIAL_SECONDS,
                request_timeout=REQUEST_SECONDS,
                security=security,
            )
        return self._cluster

    def _read_security(self) -> ClientSecurity:
        name = self.key.client_config
        if name is None:
            return PLAINTEXT
        directory = self._host.runtime.static_config.headrace_link_client_config_dir
        if directory is None:
            raise ConfigError(
                f"the link names the client config {name}: set headrace.link.client.config.dir of this broker"
            )
        security = ClientSecurity.read(f"{directory}/{name}")
        if security.tls is not None or security.credentials is not None:
            from headrace.client.link_security import SecureLinks

            context = None
            if security.tls is not None:
                from headrace.tls.contexts import client_context

                context = client_context(security.tls)
            self._dialer.security = SecureLinks(context, security.credentials)
        return security

    def _apply(self, reply: MetadataResponse) -> None:
        topics = {topic.name: topic for topic in reply.topics if topic.name is not None}
        for name, topic in topics.items():
            self._note_error(name, topic)
        sizes = {name: len(topic.partitions) for name, topic in topics.items() if not topic.error_code}
        self._on_topics(self, sizes)
        leaders = {
            (name, each.partition_index): (each.leader_id, each.leader_epoch)
            for name, topic in topics.items()
            if not topic.error_code
            for each in topic.partitions
        }
        for linked in list(self._members):
            found_topic = topics.get(linked.source_topic)
            if found_topic is None or found_topic.error_code:
                linked.on_source_lost(0 if found_topic is None else found_topic.error_code)
                continue
            if found_topic.topic_id != linked.topic_id:
                linked.stop_for(
                    f"topic {linked.source_topic} was deleted at the source and made anew (id"
                    f" {found_topic.topic_id}, not {linked.topic_id}): it is another log. Promote it, or"
                    " delete it and link again"
                )
                self._on_stopped(linked)
                continue
            found = leaders.get((linked.source_topic, linked.topic_partition.partition))
            if found is None:
                linked.on_source_lost(int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            elif found[0] >= 0:
                self._place(linked, *found)
        for broker_id in [each for each, fetcher in self._fetchers.items() if fetcher.is_idle]:
            self._end(broker_id)

    def _note_error(self, name: str, topic: MetadataResponseTopic) -> None:
        if not topic.error_code:
            self.topic_errors.pop(name, None)
        elif topic.error_code in MISSING:
            self.topic_errors[name] = f"the source has no topic {name}"
        else:
            self.topic_errors[name] = f"topic {name}: {ErrorCode(topic.error_code).name}"

    def _place(self, linked: LinkedPartition, leader: int, epoch: int) -> None:
        known = (linked.source_leader, linked.source_epoch)
        if epoch < known[1] or (leader, epoch) == known:
            return  # a broker over there that is behind, or nothing new
        before = self._fetchers.get(linked.source_leader)
        if before is not None:
            before.unfollow(linked)
        linked.on_leader(leader, epoch)
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            fetcher = self._fetchers[leader] = LinkFetcher(self._host, self, leader)
            fetcher.follow(linked)
            fetcher.start()
        else:
            fetcher.follow(linked)

    def _end(self, broker_id: int) -> None:
        fetcher = self._fetchers.pop(broker_id)
        task = spawn(f"the end of the link to broker {broker_id}", fetcher.stop(), self._host.runtime.loop)
        self._ending[task] = None
        task.add_done_callback(lambda done: self._ending.pop(done, None))

    # --- what fetchers ask ------------------------------------------------------------------------------

    def stopped(self, linked: LinkedPartition) -> None:
        self._on_stopped(linked)

    async def dial(self, broker_id: int) -> tuple[Link, int]:
        """A link of its own for fetches, and the version of Fetch that both sides have."""
        cluster = await self.cluster()
        connection = await cluster.broker(broker_id)
        version = connection.version_for(FetchRequest, VERSION)
        if version < FIRST_WITH_TOPIC_IDS:
            raise ClientFailure(
                f"broker {broker_id} of the source has Fetch up to version {version}",
                f"a link needs version {FIRST_WITH_TOPIC_IDS}, which Apache Kafka has from 3.1 on",
            )
        host, _, port = connection.peer.rpartition(":")
        return await self._dialer.dial(host, int(port), timeout=DIAL_SECONDS), version

    async def ends(self, linked: LinkedPartition) -> tuple[int, int]:
        """Where the source's log begins, and how far it is committed."""
        cluster = await self.cluster()
        name = TopicPartition(linked.source_topic, linked.topic_partition.partition)
        first = await list_offsets(cluster, {name: EARLIEST})
        last = await list_offsets(cluster, {name: LATEST})
        return first[name].offset, last[name].offset

    @property
    def members(self) -> Iterable[LinkedPartition]:
        return self._members
