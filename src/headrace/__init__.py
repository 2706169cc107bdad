"""Headrace: a Kafka-compatible, partitioned, persistent commit log."""

__version__ = "0.1.0"
