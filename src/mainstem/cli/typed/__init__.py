"""What a person types: pairs, times, choices and numbers."""
