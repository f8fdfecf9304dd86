"""The pure core: standard library and pydantic only."""
