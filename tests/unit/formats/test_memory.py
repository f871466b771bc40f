"""How much memory there is for a file."""

import subprocess
import sys

from refusals import refused

from pipeline.errors import InputError
from pipeline.files.memory import GIB, memory_max_bytes, refuse_too_large

IN_LITTLE = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (3 * 1024**3, 3 * 1024**3))
from pipeline.files.memory import memory_max_bytes
print(memory_max_bytes())
"""


def test_a_limit_of_this_process_counts():
    said = subprocess.run(
        [sys.executable, "-c", IN_LITTLE], check=True, capture_output=True, text=True
    ).stdout
    assert int(said) <= 1.25 * GIB


def test_a_file_that_fits_is_not_refused():
    refuse_too_large(memory_max_bytes() // 4, per_byte=4, where="payroll.csv")


def test_a_file_that_does_not_fit_is_refused_with_both_figures():
    with refused(
        InputError, "files.needs_more_memory", where="payroll.csv", byte_count=memory_max_bytes() / GIB
    ):
        refuse_too_large(memory_max_bytes(), per_byte=4, where="payroll.csv")
