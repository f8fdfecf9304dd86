"""Providers' caches of what requests begin with: named by turns, made and renewed by workers, ended by sweepers."""
