"""Page handlers, a module for each kind: each takes a request and returns a page or a redirect."""
