"""When a log is to be synced, by `flush.messages` and `flush.ms`, and up to where it has been: the recovery
point. It moves on when a sync has succeeded, and back only when the log is cut.
"""

from mainstem.config import LogConfig


class FlushSchedule:
    """The append compares with `offset_at` and `ms_at`, from which on it asks `is_demanded`."""

    __slots__ = ("_last_ms", "_messages", "_ms", "ms_at", "offset_at", "recovery_point")

    def __init__(self, recovery_point: int, config: LogConfig, now_ms: int) -> None:
        self.recovery_point = recovery_point
        self._last_ms = now_ms
        self.update_config(config)

    def update_config(self, config: LogConfig) -> None:
        """Take new settings; they hold from the next append on."""
        self._messages = config.flush_messages
        self._ms = config.flush_ms
        self._set()

    def _set(self) -> None:
        self.offset_at = self.recovery_point + self._messages - 1
        self.ms_at = self._last_ms + self._ms

    def is_demanded(self, end_offset: int, now_ms: int) -> bool:
        """Whether the settings demand a sync now, after an append. `flush.ms` counts from now again."""
        if end_offset <= self.offset_at and now_ms < self.ms_at:
            return False
        self._last_ms = now_ms
        return True

    def synced(self, offset: int) -> None:
        """Everything before `offset` is on disk."""
        self.recovery_point = max(self.recovery_point, offset)
        self._set()

    def began_again(self, now_ms: int) -> None:
        """`flush.ms` counts from now."""
        self._last_ms = now_ms
        self._set()

    def cut(self, offset: int) -> None:
        """What is behind `offset` is gone, or not on disk any more."""
        self.recovery_point = min(self.recovery_point, offset)
        self._set()
