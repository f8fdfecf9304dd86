"""Routes for clients of OpenAI's API: its paths, bodies, streams and errors, on top of this service's own services."""
