"""`mainstem up`."""
