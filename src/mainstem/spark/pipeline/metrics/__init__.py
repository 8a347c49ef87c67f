"""What a running pipeline has done, and how Prometheus is told."""
