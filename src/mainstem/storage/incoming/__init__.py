"""What happens to a client's batch before the log takes it: checks, recompression, a look at the keys."""
