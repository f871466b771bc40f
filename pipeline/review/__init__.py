"""Make payable files from outcomes: corrections, releases and holds.

    Outcomes -fix-> Corrections -> corrections.csv, and the payment file with the accepted ones
    Outcomes -split-> Placements -> the payments to release, those to hold, and the reasons

Both jobs read the folder of a run, and send nothing. A payment file is made from the outcome file, whose hash
is recorded. Before it gets its final name, it is read back, and must contain exactly what was written.
"""
