"""Side-by-side benchmarks of Mainstem and Apache Kafka. Nothing here is imported by the product."""
