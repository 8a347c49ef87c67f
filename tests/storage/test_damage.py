"""Bits flipped and files cut at random places: whatever is left is a true beginning of the log."""

import random
from pathlib import Path

import pytest

from mainstem.storage.log import Log
from tests.storage.log_helpers import NOW_MS, append, files, idempotent, open_log, read_batches


def written(tmp_path: Path, chance: random.Random) -> Log:
    log = open_log(tmp_path, segment_bytes=3000, index_interval_bytes=150)
    for sequence in range(60):
        if chance.random() < 0.5:
            append(log, chance.randrange(1, 4), value=bytes(chance.randrange(150)), epoch=sequence // 20)
        else:
            log.append_as_leader(idempotent(sequence, producer_id=sequence), sequence // 20, NOW_MS)
    return log


def damage(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    kind = chance.choice(["flip", "flip", "cut", "zero", "noise", "grow"])
    position = chance.randrange(len(data)) if data else 0
    if kind == "flip" and data:
        data[position] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del data[position:]
    elif kind == "zero":
        data[position:] = bytes(len(data) - position)
    elif kind == "noise":
        data[position : position + 40] = chance.randbytes(40)
    else:
        data += chance.randbytes(chance.randrange(1, 200))
    path.write_bytes(data)


@pytest.mark.parametrize("seed", range(60))
def test_recovery_keeps_a_prefix_and_goes_on(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    log = written(tmp_path, chance)
    before = read_batches(log)
    log.close(clean=chance.random() < 0.5)
    damaged = chance.choice(sorted(Path(log.directory).glob("0*")))
    damage(damaged, chance)

    log = open_log(tmp_path, segment_bytes=3000, index_interval_bytes=150)
    after = read_batches(log)
    # The base offset and leader epoch of a batch are not covered by its checksum.
    assert [header[3:] for header in after] == [header[3:] for header in before[: len(after)]]
    if damaged.suffix != ".log":
        assert after == before
    end = log.log_end_offset
    assert append(log, 2, epoch=99) == end
    log.close()
    log = open_log(tmp_path, clean=True, recovery_point=end + 2, segment_bytes=3000)
    assert read_batches(log)[:-1] == after
    assert len(files(log, ".log")) == len(log.segments)
