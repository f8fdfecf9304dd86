"""``throughline demo``: a long conversation played through HTTP, and what the service makes of it."""
