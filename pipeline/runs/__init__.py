"""A run and its folder: the arguments, the files, and proof that they are unchanged."""
