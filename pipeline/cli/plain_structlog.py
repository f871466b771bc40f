"""Import structlog as if Rich were not installed.

structlog imports Rich for tracebacks, which we do not use: they show the values of variables, and take a
tenth of the start. Our code that writes to a terminal still imports Rich.
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
