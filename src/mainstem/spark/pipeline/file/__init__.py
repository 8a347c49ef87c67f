"""A pipeline file: read with the place of each part, made into the declared classes, its functions found."""
