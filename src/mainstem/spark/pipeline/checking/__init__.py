"""The mistakes in a pipeline: those that its text shows, those that the connector and Spark tell."""
