"""What the core knows about languages: a TOML file for each, named by its code, as ``language_file`` describes it."""
