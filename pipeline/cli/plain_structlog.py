"""Import structlog as though Rich were not installed.

structlog imports Rich for tracebacks, which we do not use: they show values of variables, and the import
takes a tenth of the start-up time. Our own code for terminals still imports Rich.
"""

import sys

if "rich" in sys.modules:
    import structlog
else:
    sys.modules["rich"] = None  # type: ignore[assignment]  # with this, importing it fails
    try:
        import structlog
    finally:
        del sys.modules["rich"]

__all__ = ["structlog"]
