"""`data_set_parts` as a command that, as ours, loads nothing: every process of a pool loads it once more."""

import sys
from pathlib import Path

if __name__ == "__main__":
    from data_set_parts import main

    main(Path(sys.argv[1]), Path(sys.argv[2]))
