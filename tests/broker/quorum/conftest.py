"""Quorums that are stopped when their test is over."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.quorum.controllers import Controllers, Make


@pytest.fixture
def make_controllers(runner: asyncio.Runner, tmp_path: Path) -> Iterator[Make]:
    made: list[Controllers] = []

    def make(*arguments: object, **options: object) -> Controllers:
        controllers = Controllers(tmp_path / f"quorum-{len(made)}", *arguments, **options)  # type: ignore[arg-type]
        made.append(controllers)
        return controllers

    yield make
    for controllers in made:
        runner.run(controllers.stop())
