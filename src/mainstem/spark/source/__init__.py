"""Reading topics with Spark: options, offsets, plans and limits as of Spark's own connector, and the readers.

`options`, `partitions`, `planning`, `admission` and `filters` decide and touch nothing; `offset_lookup` asks
the cluster on the driver; `task_reading` reads ranges on the workers; the readers are what Spark calls.
"""
