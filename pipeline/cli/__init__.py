"""The commands of `precheck`, each in the module of its name: parse, call, print, exit.

No decision lives here. Heavy imports stand inside the commands, so that `precheck --help` answers at once.
"""
