"""The health of a directory: a lack of room passes, anything else lasts until a restart."""

import errno
import os
from pathlib import Path
from random import Random

import pytest

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.storage.environment import DirectoryHealth, LogEnvironment
from tests.storage.log_helpers import append, open_log
from tests.support.failing_files import FailingFiles


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE])
def test_a_lack_of_room_passes(tmp_path: Path, code: int) -> None:
    health = DirectoryHealth(tmp_path)
    answer = health.refuse(OSError(code, os.strerror(code)), "cannot write to t-0")
    assert isinstance(answer, KafkaError)
    assert answer.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert os.strerror(code) in answer.message
    health.check()


@pytest.mark.parametrize("code", [errno.EIO, errno.EROFS, errno.ENODEV, errno.ENOENT])
def test_anything_else_takes_the_directory_offline(tmp_path: Path, code: int) -> None:
    health = DirectoryHealth(tmp_path)
    told: list[bool] = []
    health.on_failure = lambda: told.append(True)
    for _ in range(2):
        health.refuse(OSError(code, os.strerror(code)), "cannot write to t-0")
    with pytest.raises(KafkaError, match="offline"):
        health.check()
    assert told == [True]


def test_a_full_disk_does_not_fill_the_log_with_lines(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    health = DirectoryHealth(tmp_path)
    for _ in range(1000):
        health.refuse(OSError(errno.ENOSPC, "No space left on device"), "cannot write to t-0")
    assert 1 <= len(caplog.records) <= 10


@pytest.mark.parametrize("call", ["pwrite", "pread"])
def test_a_broken_disk_is_noticed_when_writing_and_when_reading(tmp_path: Path, call: str) -> None:
    files = FailingFiles()
    log = open_log(tmp_path, files=files)
    for _ in range(10):
        append(log)

    error = OSError(errno.EIO, "Input/output error")
    with files.failing(call, error=error), pytest.raises(KafkaError) as refused:
        append(log) if call == "pwrite" else log.read(5, 100)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.offline
    assert log.log_end_offset == 10


def test_jitter_is_bounded_by_the_age_of_segments() -> None:
    environment = LogEnvironment(random=Random(1))
    assert environment.segment_jitter_ms(0, 1000) == 0
    assert all(environment.segment_jitter_ms(5000, 100) < 100 for _ in range(50))
