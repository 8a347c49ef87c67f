"""A scrape is made once for all who wait for it, and lets others have their turns."""

import asyncio

from mainstem.broker.clock import Clock
from mainstem.broker.monitoring.scrape import Scraper
from mainstem.broker.turns import Turns
from mainstem.metrics import Exposition
from tests.broker.scraping import Scrape


async def test_whoever_asks_meanwhile_gets_the_same_text() -> None:
    scraper = Scraper(Turns(asyncio.get_running_loop(), Clock()))
    made = 0

    def collect(out: Exposition):  # type: ignore[no-untyped-def]
        nonlocal made
        made += 1
        out.gauge("made", "How often.").add(made)
        for _ in range(100):
            yield

    scraper.add(collect)
    texts = await asyncio.gather(*(scraper.scrape() for _ in range(10)))
    assert made == 1
    assert len({b"".join(text) for text in texts}) == 1
    scraper.forget()
    assert Scrape(b"".join(await scraper.scrape()).decode()).one("made") == 2
    scraper.close()


async def test_others_are_served_while_a_long_scrape_is_made() -> None:
    scraper = Scraper(Turns(asyncio.get_running_loop(), Clock()))
    turns = 0

    def collect(out: Exposition):  # type: ignore[no-untyped-def]
        gauge = out.gauge("some", "Many.")
        for number in range(200_000):
            gauge.add(number)
            yield

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    scraper.add(collect)
    counting = asyncio.create_task(count_turns())
    await asyncio.sleep(0)
    await scraper.scrape()
    counting.cancel()
    assert turns > 20
    scraper.close()
