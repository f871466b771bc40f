"""A12: memory grows in line with the rows, and no faster."""

from measured import MeasuredDesk

BEND_MAX = 1.5
"""How much faster than before memory may grow with the next rows: allocators round up.

The same run differs by up to 25 MB from one time to the next. A step must be ten times that,
or its growth says more about the allocator than about the rows.
"""


def test_memory_grows_in_line_with_the_rows(tmp_path, sandbox, network_payments, tell, is_long):
    desk = MeasuredDesk(tmp_path / "desk")
    counts = (1_000_000, 2_000_000, 3_000_000) if is_long else (200_000, 1_000_000, 1_800_000)
    peaks_mb = []
    for count in counts:
        file = desk.payments(network_payments(count), name=f"{count}.csv")
        words = ("run", file, *desk.using(cop=sandbox.section()), "--limit", 0, "--quiet")
        finished = desk(*words)
        assert finished.status == 75
        peaks_mb.append(finished.peak_bytes / 1024**2)
    growths = [
        (larger - smaller) / (more - fewer) * 100_000
        for smaller, larger, fewer, more in zip(peaks_mb, peaks_mb[1:], counts, counts[1:], strict=False)
    ]
    assert growths[0] > 0, "the rows took no memory: this measured something else"
    tell(
        "A12",
        "memory of many rows",
        tried=len(counts),
        survived=len(counts) * (growths[1] <= BEND_MAX * growths[0]),
        figure=", ".join(f"{count:,} rows {mb:,.0f} MB" for count, mb in zip(counts, peaks_mb, strict=True))
        + f"; {growths[1]:.0f} MB per 100,000 rows",
        goal="grows in line with the rows",
    )
