"""The largest numbers that Kafka's requests have room for, as limits of options that take a number."""

from __future__ import annotations

INT16_MAX = 2**15 - 1
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
