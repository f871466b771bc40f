"""The page handlers, a module for each kind: a request in, a page or a redirect out."""
