"""`mainstem logs`."""
