"""Which column of a tabular file is what: headers, their words, and the cells where the words do not say."""
