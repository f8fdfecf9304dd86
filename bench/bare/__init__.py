"""Two small services that do less than Throughline, to compare its speed with. Nothing here is meant to be used."""
