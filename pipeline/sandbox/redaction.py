"""Hide what a client sent in the wrong place: in problem details, and in the call log.

A client that is being written puts things where they do not belong: a name where a member's name should
stand, a token in a path. What does not look like the word that it should be is not repeated.
"""

import re

_MEMBER = re.compile(r"[a-z][A-Za-z]{0,30}|[a-z]+(_[a-z]+){1,4}")
_SEGMENT = re.compile(r"[a-z][a-z0-9.-]{0,30}")
_HIDDEN = "..."


def shown_member(name: str) -> str:
    """A member of a document or a form by its name, where it looks like one.

    >>> shown_member("partyAgent"), shown_member("client_id"), shown_member("Avery Thornwood")
    ('partyAgent', 'client_id', '...')
    """
    return name if _MEMBER.fullmatch(name) else _HIDDEN


def shown_path(path: str) -> str:
    """A path that is not one of this server's: segments that do not look like a word are hidden.

    >>> shown_path("/sandbox/vop/v2/checks"), shown_path("/checks/00112200012345/Avery%20Thornwood")
    ('/sandbox/vop/v2/checks', '/checks/.../...')
    """
    segments = path.split("/")
    return "/".join(part if not part or _SEGMENT.fullmatch(part) else _HIDDEN for part in segments)
