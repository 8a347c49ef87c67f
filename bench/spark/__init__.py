"""A Spark with both connectors in a process of its own: the program that runs in it, and who asks it."""
