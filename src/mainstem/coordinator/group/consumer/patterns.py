"""Subscriptions by regular expression: matched on the broker, all patterns of a group at once, so that a
change leads to one new epoch.

A heartbeat only asks for the matching; it is done in events of its own, like Kafka's background task, and
the members learn of it from their next heartbeats.
"""

from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Final

from mainstem.coordinator.group import regex
from mainstem.coordinator.group.consumer.group import ConsumerGroup, Resolved
from mainstem.coordinator.group.consumer.journal import Journal
from mainstem.coordinator.group.consumer.member import Member
from mainstem.coordinator.group.consumer.metadata_hash import MetadataHashes
from mainstem.coordinator.group.consumer.pattern_matching import Matching, MaySee
from mainstem.coordinator.group.state import GroupState

REFRESH_INTERVAL_MS_MIN: Final = 10_000
# The names of topics and patterns that one event writes, in bytes: far less than a batch may have, so that
# only a single pattern that matches thousands of topics can be too much for one.
_WRITTEN_BYTES_MAX: Final = 128 * 1024


class Change(Enum):
    """What a heartbeat did to the member's pattern."""

    NONE = auto()
    UPDATED = auto()
    # The new subscription is known already, so that a new assignment makes sense at once.
    UPDATED_AND_RESOLVED = auto()


class Patterns:
    """The patterns of all groups of one machine."""

    def __init__(self, state: GroupState, journal: Journal, hashes: MetadataHashes) -> None:
        self._state = state
        self._journal = journal
        self._hashes = hashes
        # The metadata in which the newest topic appeared, and the names that were there when somebody last
        # looked: nobody does as long as no group has a pattern.
        self._newest_topic_version = 0
        self._names_version = -1
        self._names: frozenset[str] | None = None

    def check(self, group: ConsumerGroup, old: Member, new: Member) -> None:
        """KafkaError (INVALID_REGULAR_EXPRESSION) when the member brings a pattern that is none."""
        pattern = new.subscribed_topic_regex
        if pattern and pattern != old.subscribed_topic_regex and not group.patterns[pattern]:
            regex.compile_pattern(pattern)

    def update(
        self, group: ConsumerGroup, old: Member, new: Member, may_see: MaySee | None, now_ms: int
    ) -> Change:
        """After `new` took the place of `old`: forget what nobody uses, ask for what is missing."""
        before, after = old.subscribed_topic_regex or "", new.subscribed_topic_regex or ""
        change = Change.NONE
        if before != after:
            if before and not group.patterns[before]:
                self._journal.put_resolved(group, before, None)
            is_known = after in group.resolved if after else bool(before)
            change = Change.UPDATED_AND_RESOLVED if is_known else Change.UPDATED
        # Only those whose own members have patterns see to them: a classic member cannot say what it may see.
        if may_see is not None and group.patterns and self._is_refresh_due(group, now_ms):
            self._schedule(group, partial(self._begin, group, may_see), now_ms)
        return change

    def forget_unused(self, group: ConsumerGroup) -> None:
        """After members left: delete the patterns that none of those that stay has."""
        for pattern in [known for known in group.resolved if not group.patterns[known]]:
            self._journal.put_resolved(group, pattern, None)

    def is_refresh_needed(self, group: ConsumerGroup, now_ms: int) -> bool:
        """Whether a heartbeat that brings nothing new has patterns to see to."""
        return bool(group.patterns) and self._is_refresh_due(group, now_ms)

    def note_new_topics(self) -> None:
        """New topics call for a new matching; topics that went away do not, no assignment has them."""
        topics = self._state.topics
        if topics.version == self._names_version:
            return
        self._names_version = topics.version
        names = frozenset(topics.names())
        if self._names is None or names - self._names:
            self._newest_topic_version = topics.version
        self._names = names

    def _is_refresh_due(self, group: ConsumerGroup, now_ms: int) -> bool:
        if _timer_key(group.group_id) in self._state.timers or now_ms < group.patterns_retry_ms:
            return False
        last = next(iter(group.resolved.values()), None)
        if last is not None and now_ms <= last.timestamp_ms + REFRESH_INTERVAL_MS_MIN:
            return False
        if last is None or len(group.patterns) != len(group.resolved):
            return True
        self.note_new_topics()
        if group.patterns_version < self._newest_topic_version:
            return True
        interval_ms: int = self._state.config.get("group.consumer.regex.refresh.interval.ms")
        return now_ms > last.timestamp_ms + interval_ms

    # ---- events of their own, each as short as the timers of the shell want them

    def _schedule(self, group: ConsumerGroup, event: Callable[[int], None], now_ms: int) -> None:
        self._state.timers.schedule(_timer_key(group.group_id), now_ms, event)

    def _begin(self, group: ConsumerGroup, may_see: MaySee, now_ms: int) -> None:
        self.note_new_topics()
        version = self._state.topics.version
        matching = Matching(group.patterns, self._names or (), version, may_see, now_ms)
        self._match(group, matching, now_ms)

    def _match(self, group: ConsumerGroup, matching: Matching, now_ms: int) -> None:
        self._state.effects.on_failure(partial(_failed, group, matching, now_ms))
        if matching.run_slice():
            self._write(group, matching, now_ms)
        else:
            self._schedule(group, partial(self._match, group, matching), now_ms)

    def _write(self, group: ConsumerGroup, matching: Matching, now_ms: int) -> None:
        """What an event writes stands for itself, with an epoch if it changes anything: a later one may fail.
        Nearly always there is only one.
        """
        if self._state.groups.get(group.group_id) is not group:
            return
        self._state.effects.on_failure(partial(_failed, group, matching, now_ms))
        has_changed = False
        size = 0
        while matching.resolved and size < _WRITTEN_BYTES_MAX:
            pattern = next(iter(matching.resolved))
            topics = matching.resolved.pop(pattern)
            if not group.patterns[pattern]:
                continue  # nobody has it any more
            former = group.resolved.get(pattern)
            has_changed |= topics != (former.topics if former is not None else frozenset())
            resolved = Resolved(topics, matching.version, matching.started_ms)
            self._journal.put_resolved(group, pattern, resolved)
            size += len(pattern) + sum(map(len, topics))
        if matching.resolved:
            self._schedule(group, partial(self._write, group, matching), now_ms)
        elif not matching.has_failed:
            group.patterns_version = matching.version
        metadata_hash = self._hashes.of(group.subscribed_topics())
        if has_changed or metadata_hash != group.metadata_hash:
            self._journal.put_epoch(group, group.epoch + 1, metadata_hash)
            group.topics_version = self._state.topics.version


def _failed(group: ConsumerGroup, matching: Matching, now_ms: int) -> None:
    """Not at once again: it may fail for the same reason each time."""
    matching.has_failed = True
    group.patterns_version = -1
    group.patterns_retry_ms = now_ms + REFRESH_INTERVAL_MS_MIN


def _timer_key(group_id: str) -> tuple[str, str]:
    return "consumer-patterns", group_id
