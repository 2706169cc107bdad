"""The settings of groups that have some of their own, as the metadata says them now.

One table serves all shards. A change holds from the next heartbeat of a member on: it is answered with the
new interval, and its session has the new length.
"""

from __future__ import annotations

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.runtime.runtime import Runtime
from headrace.config.group import resolve_group
from headrace.controller.delta import MetadataDelta
from headrace.controller.image import ConfigResource, ResourceType
from headrace.groups.group_config import GroupConfig


class GroupConfigs:
    def __init__(self, runtime: Runtime, metadata: MetadataCache) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self.own: dict[str, GroupConfig] = {}
        """By group id."""
        self.on_config_changed()

    def on_config_changed(self) -> None:
        """What is set for all groups changed, and a group may have only a part of its own."""
        self._common = GroupConfig.of(self._runtime.config)
        for resource in self._metadata.image.configured_resources():
            self._follow(resource)

    def on_delta(self, delta: MetadataDelta) -> None:
        for resource in delta.configs:
            self._follow(resource)

    def _follow(self, resource: ConfigResource) -> None:
        if resource.type != ResourceType.GROUP:
            return
        overrides = self._metadata.image.configs(resource)
        if overrides:
            settings = resolve_group(self._runtime.config, overrides)
            self.own[resource.name] = self._common.with_own(settings)
        else:
            self.own.pop(resource.name, None)
