"""`mainstem dump-log`."""
