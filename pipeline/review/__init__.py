"""From the answers to files that can be paid: what to correct, what to release, what to hold.

    Outcomes -fix-> Corrections -> corrections.csv, and the payment file with those that were accepted
    Outcomes -split-> Placements -> the payments to release, the payments to hold, and why

Both jobs read the folder of a run and send nothing. A payment file is built from the outcome file, whose
hash is on record, is read again before it gets its name, and must then hold exactly what was written.
"""
