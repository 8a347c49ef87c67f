"""Errors of the broker shell that a person reads: one line that says what happened and what to change."""


class StartupError(Exception):
    """The node cannot start; the message is the single line shown to the operator."""


class MetadataLogError(Exception):
    """The metadata log cannot be used; the message says why and what to do."""


class CloseConnection(Exception):
    """The request cost its sender the connection; the message says why, for the log."""
