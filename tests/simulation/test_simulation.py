"""The simulated world: the same seed is the same history, and what was found once stays found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from simulation.history import History

DIGESTS = """
import sys
sys.path.insert(0, sys.argv[1])
from simulation.history import History
print(*(History(seed, 60).play().digest for seed in range(8)))
"""


def digests(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "POLARS_MAX_THREADS": "1"}
    folder = str(Path(__file__).resolve().parents[1])
    ended = subprocess.run(
        [sys.executable, "-c", DIGESTS, folder], env=environment, capture_output=True, text=True, check=True
    )
    return ended.stdout


def test_the_same_seed_is_the_same_history_byte_for_byte():
    assert digests("1") == digests("2")


@pytest.mark.parametrize(
    ("seed", "found"),
    [
        (7, "a pause began only once the reply that asked for it was recorded"),
        (24, "behind a shut door, a slow server got more requests than one process had places"),
    ],
)
def test_what_a_history_once_found_is_mended(seed, found):
    assert History(seed).play().breaches == [], found


def test_some_histories_hold_whatever_goes_wrong_in_them():
    broken = {seed: breaches for seed in range(20) if (breaches := History(seed, 100).play().breaches)}
    assert broken == {}
