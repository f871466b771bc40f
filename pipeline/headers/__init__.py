"""Assign fields to the columns of a table, by the words of headers and, if they do not decide, by cells."""
