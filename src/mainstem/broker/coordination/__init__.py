"""Runs the coordinators of groups and transactions on the partitions of their internal topics."""
