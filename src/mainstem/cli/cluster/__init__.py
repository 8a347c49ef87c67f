"""`mainstem cluster`."""
