"""Page handlers, one module for each kind of page; each takes a request and returns a page or a redirect."""
