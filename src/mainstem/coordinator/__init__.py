"""Coordinators of groups and transactions, sans I/O: requests and the time in; replies, records, timers out.

`machine.py` says what such a state machine is to the shell that runs it.
"""
