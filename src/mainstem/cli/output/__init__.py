"""What a person or a script reads: tables, JSON, sizes and lengths of time."""
