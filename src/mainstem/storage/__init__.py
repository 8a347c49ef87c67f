"""The log on disk, in Kafka's own format: segments, indexes, checkpoints, recovery and retention.

Synchronous and without asyncio. The time is always passed in as `now_ms`; nothing here reads a clock.
"""
