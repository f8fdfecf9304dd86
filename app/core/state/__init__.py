"""The structured state: merged, pruned, restored, changed to another schema, erased from, laid out."""
