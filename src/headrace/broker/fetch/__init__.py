"""Serving Fetch: sessions, reading within byte limits, waiting for more."""
