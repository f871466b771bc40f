"""Which column of a tabular file is what: headers, their words, and the cells where words do not decide."""
