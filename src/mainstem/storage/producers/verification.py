"""The proof that a transaction is open at its coordinator, asked for before its first batch in a partition.

Between the question and the batch, the transaction may end: then its marker is in the log already, and the
batch would open one that nobody ever ends (KIP-890). So the question leaves a guard with the log, which a
marker removes, and the batch must show the guard that is still there. Guards are compared by identity: one of
an earlier question is worth nothing.
"""


class VerificationGuard:
    """A question about one producer's transaction in one partition. It also keeps the lowest sequence that
    was asked for, because batches behind it must not overtake it while it is tried again.
    """

    __slots__ = ("asked_ms", "epoch", "lowest_sequence", "supports_epoch_bump")

    def __init__(self, epoch: int, sequence: int, supports_epoch_bump: bool) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.supports_epoch_bump = supports_epoch_bump
        # Set when expired producers are looked for; nobody has the time at hand when a guard is made.
        self.asked_ms: int | None = None

    def asked_again(self, epoch: int, sequence: int) -> None:
        """Another batch waits for the same answer."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence

    def is_forgotten(self, now_ms: int, expiration_ms: int) -> bool:
        """Whether it was there for so long that no answer will come."""
        if self.asked_ms is None:
            self.asked_ms = now_ms
        return now_ms - self.asked_ms >= expiration_ms
