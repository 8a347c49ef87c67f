"""The exception of mainstem.testing."""


class BrokerError(Exception):
    """The broker did not start, or is not running; the message holds the last lines of its log."""
