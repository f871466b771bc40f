"""The commands of `precheck`, each in the module of its name: parse, call, print, exit.

Heavy imports are inside the commands, so that `precheck --help` is fast.
"""
