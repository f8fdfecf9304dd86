"""The page in the browser: its files, and the session of one who logged in."""
