"""Exact values in one form each, whatever way they are written: numbers, money, dates, times."""
