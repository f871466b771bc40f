"""The desk: payment files uploaded, checked, decided about and released in a browser.

It calls jobs and decides nothing. All its data are files: the folders of runs, and next to each what users
entered (`schemas.desk`).
"""
