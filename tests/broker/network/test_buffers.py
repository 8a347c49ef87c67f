"""Receive buffers and the memory of requests: bounded, reused, and given back."""

from mainstem.broker.network.buffers import BufferPool, RequestMemory

KIB = 1024
MIB = 1024 * KIB


def test_a_buffer_that_is_given_back_is_taken_again() -> None:
    pool = BufferPool()
    buffer = pool.take(100 * KIB)
    assert len(buffer) == 128 * KIB
    pool.give(buffer)
    assert pool.take(65 * KIB + 1) is buffer
    assert pool.take(100 * KIB) is not buffer


def test_the_pool_never_keeps_more_than_its_bound() -> None:
    pool = BufferPool(retained_bytes_max=4 * MIB)
    buffers = [pool.take(1 * MIB) for _ in range(10)]
    for buffer in buffers:
        pool.give(buffer)
    assert sum(len(buffer) for free in pool._free.values() for buffer in free) == 4 * MIB


def test_a_very_large_buffer_has_its_exact_size_and_is_not_kept() -> None:
    pool = BufferPool()
    buffer = pool.take(5 * MIB + 1)
    assert len(buffer) == 5 * MIB + 1
    pool.give(buffer)
    assert not any(pool._free.values())


def test_requests_share_the_limit_and_the_first_always_has_room() -> None:
    memory = RequestMemory(100)
    assert memory.try_reserve(500), "else a request above the limit would wait for ever"
    assert not memory.try_reserve(1)
    memory.release(500)
    assert memory.try_reserve(60)
    assert memory.try_reserve(40)
    assert not memory.try_reserve(1)


def test_a_release_wakes_everybody_who_waits_once() -> None:
    memory = RequestMemory(100)
    memory.try_reserve(100)
    woken: list[str] = []

    def first() -> None:
        woken.append("first")
        memory.wait(first)  # found no room again

    def second() -> None:
        woken.append("second")

    def gone() -> None:
        woken.append("gone")

    for waiter in (first, second, gone, first):
        memory.wait(waiter)
    memory.forget(gone)
    memory.release(50)
    assert woken == ["first", "second"]
    memory.release(50)
    assert woken == ["first", "second", "first"]


def test_a_few_large_buffers_lie_on_huge_pages_and_the_rest_does_not() -> None:
    pool = BufferPool()
    buffers = [pool.take(1 * MIB) for _ in range(6)]
    assert [len(buffer) for buffer in buffers] == [2 * MIB] * 4 + [1 * MIB] * 2
    for buffer in buffers:
        buffer[:3] = b"abc"
        pool.give(buffer)
    assert bytes(pool.take(1 * MIB)[:3]) == b"abc", "one that was given back is taken again"
