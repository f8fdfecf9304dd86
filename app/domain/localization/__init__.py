"""Words for people, in their language: one TOML file per language, added without code."""
