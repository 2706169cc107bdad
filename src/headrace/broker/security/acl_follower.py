"""Keeps the authorizer what the committed ACLs say."""

from __future__ import annotations

from collections.abc import Callable

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.config.broker import BrokerConfig
from headrace.controller.delta import MetadataDelta
from headrace.security.acl_index import AclIndex
from headrace.security.principal import super_users
from headrace.security.rights import Authorizer, Report


class AclFollower:
    """Invariant: the authorizer decides by exactly the rules of the image whose epoch is `_epoch`."""

    def __init__(
        self,
        metadata: MetadataCache,
        config: BrokerConfig,
        on_denial: Report,
        on_shadow_denial: Report,
        on_use: Report,
    ) -> None:
        self._metadata = metadata
        self._allows_without_rules = config.allow_everyone_if_no_acl_found
        self._epoch = metadata.image.acls.epoch
        self.authorizer = Authorizer(
            self._index(),
            super_users=[str(each) for each in super_users(config.super_users)],
            mode="shadow" if config.headrace_authorizer_mode == "shadow" else "enforce",
            on_denial=on_denial,
            on_shadow_denial=on_shadow_denial,
            on_use=on_use,
        )
        self.on_change: Callable[[], None] = lambda: None
        """Told after every change of the rules."""
        metadata.store.subscribe(self._on_delta)

    def _index(self) -> AclIndex:
        rules = self._metadata.image.acls.by_id.values()
        return AclIndex(rules, allow_everyone_if_no_acl_found=self._allows_without_rules)

    def _on_delta(self, delta: MetadataDelta) -> None:
        epoch = self._metadata.image.acls.epoch
        if epoch == self._epoch:
            return
        if delta.acls:
            for change in delta.acls:
                (self.authorizer.add if change.added else self.authorizer.remove)(change.rule)
        else:  # the image is another one
            self.authorizer.replace_index(self._index())
        self._epoch = epoch
        self.on_change()
