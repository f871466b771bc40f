"""Process the parts of a data set with engines, all of which run the same four functions."""
