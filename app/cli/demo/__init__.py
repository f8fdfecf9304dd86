"""``throughline demo``: plays a long conversation through HTTP, and shows what the service makes of it."""
