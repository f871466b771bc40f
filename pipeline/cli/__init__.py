"""The commands of `precheck`, each in the module of its name: parse, call, print, exit.

They contain no rules of their own. Heavy imports are inside the commands, so that `precheck --help` is fast.
"""
