"""The gate: what a summarizer's answer has to pass, and what it may rest on."""
