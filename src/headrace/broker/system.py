"""The real clock and the real randomness."""

from __future__ import annotations

import random
import time


class SystemClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


def system_random() -> random.Random:
    """For ids and placement. Nothing here is a secret: those come from `secrets`."""
    return random.SystemRandom()


def boot_id() -> str:
    """Another one after each start of the host; empty where the system does not tell."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
