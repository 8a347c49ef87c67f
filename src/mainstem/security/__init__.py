"""Principals and what they may do. Decides only; performs no I/O."""
