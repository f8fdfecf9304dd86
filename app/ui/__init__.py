"""The page as it is shipped: ``ui.zip``, built from ``web/`` (see docs/web.md)."""
