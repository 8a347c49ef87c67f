"""Dead letters: the headers that say why a record is one, and the records themselves."""
