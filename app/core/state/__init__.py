"""The structured state: merging, pruning, restoring, changing the schema, erasing, and the layout."""
