"""Judge a client's behaviour by the rules of the reference, HTTP and TLS, and by good manners.

    rules.py     the rules, one function each, their result (kept, broken or never met), and their table
    reports.py   the verdict as text, JSON and JUnit XML

A rule is a pure function of the journal. It can only judge by what a client does: if a client repeats a
question after a wrong echo, it must have checked the echo.
"""
