"""What a process of tests takes of the machine."""

from __future__ import annotations


class NoUsage:
    """A process that takes nothing."""

    def cpu_seconds(self) -> float:
        """No time."""
        return 0.0

    def resident_bytes(self) -> int:
        """No memory."""
        return 0
