"""`mainstem transactions`."""
