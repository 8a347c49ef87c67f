"""What a pipeline asks its brokers: topics, samples of records, offsets and lag."""
