"""Models of every document that crosses a border: the wire on one side, files on the other.

This package knows nothing of the program. Each module transcribes one part of the API
reference or one file contract, and nothing here calls, reads or writes anything.
"""
