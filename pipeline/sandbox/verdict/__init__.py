"""Judge a client's behaviour by the rules of the reference, HTTP and TLS, and by good manners.

A rule is a pure function of the journal. It can only judge by what a client does: if a client repeats a
question after a wrong echo, it must have checked the echo.
"""
