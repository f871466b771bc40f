"""The pages, a module for each kind: what was asked for in, a page or a way to the next one out."""
