"""The documents as a site: `python -m docs.tooling.site`, or `poe site`."""
