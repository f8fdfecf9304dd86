"""Values with one form for many ways of writing them. To be replaced by ``app.core.text.values``."""
