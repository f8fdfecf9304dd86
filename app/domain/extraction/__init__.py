"""The offline model's parts: passages, cues, choice, phrasing and retrieval. The doors are in ``extractive``."""
