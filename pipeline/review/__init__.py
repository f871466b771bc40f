"""From answers to payable files: corrections, releases and holds.

    Outcomes -fix-> Corrections -> corrections.csv, and the payment file with those that were accepted
    Outcomes -split-> Placements -> the payments to release, the payments to hold, and why

Both jobs read the folder of a run and send nothing. A payment file is built from the outcome file, whose hash
is recorded. Before it gets its name it is read again, and must hold exactly what was written.
"""
