"""The one error of the harness: a line for the person at the terminal. Never a traceback."""


class BenchError(Exception):
    """Something stands in the way of a measurement; the message says what, and what to do."""
