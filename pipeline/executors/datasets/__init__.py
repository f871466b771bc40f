"""The parts of a data set, by engines that carry the same four functions out."""
