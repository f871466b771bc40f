"""Process the parts of a data set with engines; every engine runs the same four functions."""
