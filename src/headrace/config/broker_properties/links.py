"""Links: topics that are copied from another cluster."""

from __future__ import annotations

from headrace.config.declare import optional_text


class LinkProperties:
    headrace_link_client_config_dir = optional_text(
        "headrace.link.client.config.dir",
        "A directory with client properties files: how this broker logs in to clusters that it copies "
        "linked topics from. A link names one of the files. Their secrets stay there. Without a directory a "
        "link can only use PLAINTEXT.",
    )
