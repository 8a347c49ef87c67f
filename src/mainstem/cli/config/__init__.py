"""`mainstem config`."""
