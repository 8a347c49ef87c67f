"""`mainstem topics`."""
