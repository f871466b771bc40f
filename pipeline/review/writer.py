"""What can write the payments of a run again; of a table it is another thing than of a message."""

from typing import IO, Protocol

import polars as pl

from pipeline.formats.message import Role
from pipeline.frames import Corrections, Payments


class PaymentsWriter(Protocol):
    """Writes the payments of one run in the manner of their file, and reads back what it has written.

    What it returns are the payments as they were read from the written file. Both ways to write raise
    InputError, OutputError or DiskError where the file cannot be written, and AssertionError where it holds
    something else than it was to hold.
    """

    def fitted(self, corrections: Corrections) -> Corrections:
        """Corrections as the file can hold them; what it cannot hold has an obstacle."""

    def refuse_obstacle(self) -> None:
        """Raises InputError where no changed copy of the file can or should be made."""

    def corrected(self, corrections: Corrections, file: IO[bytes], name: str) -> Payments:
        """Write all payments with corrections that have no obstacle.

        Args:
            corrections: `Corrections`, as `fitted` gave them.
            file: open for writing and reading.
            name: of the file, for messages.
        """

    def part(self, keep: pl.Series, role: Role, file: IO[bytes], name: str) -> Payments:
        """Write some of the payments.

        Args:
            keep: of each payment, in order, whether it is one of them; one at least is.
            role: what the file is for.
            file: open for writing and reading.
            name: of the file, for messages.
        """
