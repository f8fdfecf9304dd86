"""The page in the browser: its files, and the session of a user who logged in."""
