"""`mainstem produce`."""
