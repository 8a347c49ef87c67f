"""The quorum's time-outs and sizes, by the names and with the defaults that Kafka gives them."""

from msgspec import Struct


class RaftSettings(Struct, frozen=True, gc=False):
    """`election_timeout_ms` is controller.quorum.election.timeout.ms, and so on."""

    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    auto_join: bool = False  # controller.quorum.auto.join.enable
    fetch_max_bytes: int = 1024 * 1024
    fetch_snapshot_max_bytes: int = 1024 * 1024

    # What Kafka's replicas ask for; no setting changes it.
    fetch_max_wait_ms: int = 500
    # How often a replica looks whether the voters still know it right, and a leader's patience with a
    # majority, both in fetch time-outs.
    update_voter_factor: float = 3.0
    check_quorum_factor: float = 1.5

    @property
    def begin_quorum_epoch_interval_ms(self) -> int:
        """A voter that has not fetched for so long is told again who leads."""
        return self.fetch_timeout_ms // 2

    @property
    def check_quorum_timeout_ms(self) -> int:
        return int(self.fetch_timeout_ms * self.check_quorum_factor)

    @property
    def update_voter_interval_ms(self) -> int:
        return int(self.fetch_timeout_ms * self.update_voter_factor)
