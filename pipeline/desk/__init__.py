"""The desk: payment files uploaded, checked, decided about and released in a browser.

It calls jobs and decides nothing. What it knows lies in files: the folders of runs, and beside each what
people said (`schemas.desk`).
"""
