"""Judge a client's behaviour by the rules of the reference, of HTTP and TLS, and of good manners.

    judgement.py    what comes of a rule: kept, broken or never met
    requests.py     the rules of connections, TLS and requests, one function each
    conduct.py      the rules of what a client does next
    rules.py        the table: each rule's name, what a right client does, where that is written
    reports.py      the verdict as text, JSON and JUnit XML

A rule is a pure function of the journal. It sees only what a client does: a repeated question shows that the
client checked the echo.
"""
