"""What a log is made of on disk: segments, their sparse indexes, and the walk over a segment's batches."""
