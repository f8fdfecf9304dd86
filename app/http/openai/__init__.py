"""Routes for clients of OpenAI's API: its paths, bodies, streams and errors over the services of this one."""
