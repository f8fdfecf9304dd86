"""Two small services that do less than ours, to hold its speed against. Nothing here is meant to be used."""
