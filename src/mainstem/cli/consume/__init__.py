"""`mainstem consume`."""
