"""Import structlog as if Rich were not installed.

It would import Rich for tracebacks that we do not use: they show the values of variables, and take a tenth
of the start. A terminal that is written to gets Rich all the same, from the code that writes to it.
"""

import sys

if "rich" in sys.modules:
    import structlog
else:
    sys.modules["rich"] = None  # type: ignore[assignment]  # an import of it fails while this stands
    try:
        import structlog
    finally:
        del sys.modules["rich"]

__all__ = ["structlog"]
