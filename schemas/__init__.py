"""Models of every document that the program exchanges, over the network or in files.

This package does not depend on the program. Each module transcribes one part of the API reference or one file
contract, and does no input or output.
"""
