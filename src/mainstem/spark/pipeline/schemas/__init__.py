"""Columns and their types, without Spark: DDL, Arrow, what is declared and what is inferred."""
