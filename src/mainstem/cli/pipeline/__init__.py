"""`mainstem pipeline`."""
