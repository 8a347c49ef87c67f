"""A run of a pipeline: Spark's session, the views, the queries, and how a failure is told."""
