"""Models of every document that the program exchanges: over the network, and in files.

This package is independent of the program. Each module transcribes one part of the API reference or one file
contract; nothing here calls, reads or writes anything.
"""
