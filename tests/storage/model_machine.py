"""What the machines share that compare a log with a model: a log in a folder of its own, and its ends."""

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine

from mainstem.config import LogConfig
from mainstem.storage.log import Log
from tests.storage.log_helpers import NOW_MS

# Thousands of small files: a file system in memory, where there is one, does in seconds what a disk does in
# minutes.
_FAST_DIRECTORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def model_settings(max_examples: int) -> settings:
    return settings(
        max_examples=max_examples,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


class ModelMachine(RuleBasedStateMachine):
    """Every step is done to the log and to the model; after each the two must look the same."""

    config: LogConfig

    def open_new(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="log-model-", dir=_FAST_DIRECTORY))
        self.start_offset = 0
        self.log = self.open()

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            self.log.close(clean=False)
            shutil.rmtree(self.directory)

    def open(self, *, clean: bool = False, recovery_point: int = 0) -> Log:
        return Log.open(
            self.directory / "t-0",
            "t",
            0,
            bytes(16),
            self.config,
            now_ms=NOW_MS,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=self.start_offset,
        )

    def close_and_lose(self, share: float) -> int:
        """What no fsync has covered may be missing from some byte on. Returns the recovery point."""
        segment, point = self.log.segments.active, self.log.recovery_point
        self.log.close(clean=False)
        safe = 0 if point <= segment.base_offset else segment.position_of(point)
        if safe is not None:
            os.truncate(segment.path(".log"), int(safe + share * (segment.size - safe)))
        return point
