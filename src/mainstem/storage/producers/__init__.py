"""What a log knows of its producers: sequences, open transactions, which ones were aborted, and snapshots."""
