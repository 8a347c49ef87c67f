"""`mainstem groups`."""
