"""What the core knows of languages: one TOML file each, named by its code; ``dialect`` says what stands in one."""
