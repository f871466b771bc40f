"""Reports: a Summary in, a document for people out."""
