"""Process the parts of a data set, by engines that all run the same four functions."""
