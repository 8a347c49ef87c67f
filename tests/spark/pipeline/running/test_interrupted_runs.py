"""Ctrl-C lets the batch that is under way end, in Spark's own processes too; a second one does not wait."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mainstem.testing import Broker
from tests.spark.pipeline.shop import WAIT_S, Shop

pytestmark = [pytest.mark.peer, pytest.mark.timeout(1200)]

FILE = """\
pipeline: shop
checkpoint: ./checkpoint
sources:
  orders: {topic: orders, decode: {format: json, schema: id BIGINT}}
sinks:
  out: {from: orders, python: 'functions.py:write', with: {folder: FOLDER}}
"""
# A worker of Spark holds the batch up while there is a file `hold`.
FUNCTIONS = """\
import pathlib
import time


def write(frame, batch_id, folder):
    folder = pathlib.Path(folder)

    def slowly(parts):
        for part in parts:
            (folder / "begun").touch()
            while (folder / "hold").exists():
                time.sleep(0.05)
            yield part

    rows = frame.mapInArrow(slowly, frame.schema).collect()
    with (folder / "done").open("a") as file:
        file.writelines(f"{row.id}\\n" for row in rows)
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    (tmp_path / "shop.yaml").write_text(FILE.replace("FOLDER", str(tmp_path)))
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    with Broker() as broker, Shop(tmp_path, broker) as running:
        running.produce("orders", b'{"id": 1}')
        yield running


def _hold_a_batch(shop: Shop, value: bytes) -> None:
    """Have a batch under way that does not end."""
    (shop.folder / "begun").unlink(missing_ok=True)
    (shop.folder / "hold").touch()
    shop.produce("orders", value)
    end = time.monotonic() + WAIT_S
    while not (shop.folder / "begun").exists():
        assert time.monotonic() < end
        time.sleep(0.1)


def _is_running(state: dict[str, object]) -> bool:
    return state["phase"] == "running"


def _is_stopping(state: dict[str, object]) -> bool:
    return state["phase"] == "stopping"


def test_an_interrupt_of_the_whole_group_lets_the_batch_end_and_a_second_one_does_not(shop: Shop) -> None:
    done = shop.folder / "done"
    shop.start()
    shop.until(_is_running, "it runs")
    _hold_a_batch(shop, b'{"id": 2}')
    shop.interrupt()
    shop.until(_is_stopping, "it stops")
    (shop.folder / "hold").unlink()
    code, printed = shop.wait()
    assert code == 0, printed
    assert "shop: stopping\nout: 2 in," in printed
    assert done.read_text() == "1\n2\n"
    assert shop.status()["phase"] == "ended"

    shop.start()
    shop.until(_is_running, "it runs again")
    _hold_a_batch(shop, b'{"id": 3}')
    shop.interrupt()
    shop.until(_is_stopping, "it stops again")
    shop.interrupt()
    code, printed = shop.wait()
    (shop.folder / "hold").unlink()
    assert code == 130, printed
    assert "Traceback" not in printed
    assert done.read_text() == "1\n2\n"
