"""What a log knows of its producers, when it is written down, cut and found again."""

from pathlib import Path

import pytest

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.storage.producers.transaction_index import index_path
from tests.storage.log_helpers import append, files, idempotent, open_log
from tests.storage.transaction_helpers import append_in_transaction, end

NOW_MS = 1_700_000_000_000


def test_all_producers_are_listed_with_what_they_last_did(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(idempotent(0, 3), 0, NOW_MS)
    append_in_transaction(log, 5)
    plain, transactional = log.producers.active()
    assert (plain.producer_id, plain.last_sequence, plain.current_txn_start_offset) == (77, 2, -1)
    assert (transactional.producer_id, transactional.current_txn_start_offset) == (5, 3)


def test_after_a_cut_only_what_is_left_is_remembered(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_in_transaction(log, 5)
    cut = log.log_end_offset
    append_in_transaction(log, 6)
    log.producers.write_snapshot(log.log_end_offset)
    log.segments.active.truncate_to(cut)
    log.producers.rebuild(cut)
    assert list(log.producers.state.entries) == [5]
    assert log.producers.state.first_unstable_offset() == 0
    assert files(log, ".snapshot") == []


def test_without_batches_nothing_is_remembered(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_in_transaction(log, 5)
    log.producers.write_snapshot(1)
    log.producers.clear()
    assert not log.producers.state.entries
    assert files(log, ".snapshot") == []


def test_a_damaged_index_is_made_again_before_it_is_used(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_in_transaction(log, 5)
    end(log, 5, commit=False)
    append(log, 3)
    expected = log.producers.aborted.find(0, 10)
    Path(index_path(log.directory, 0)).write_bytes(b"nonsense")
    aborted = open_log(tmp_path, clean=True, recovery_point=log.log_end_offset).producers
    assert aborted.repaired(lambda: aborted.aborted.find(0, 10)) == expected == [(5, 0)]


def test_a_marker_of_an_old_epoch_or_coordinator_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_in_transaction(log, 5, epoch=3)
    with pytest.raises(KafkaError) as refused:
        log.producers.check_marker(5, 2, 0, 2)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    log.append_marker(5, 4, 7, True, 0, NOW_MS)
    with pytest.raises(KafkaError) as refused:
        log.producers.check_marker(5, 5, 6, 2)
    assert refused.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
