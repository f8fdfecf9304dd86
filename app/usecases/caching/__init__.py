"""Providers' caches of the beginnings of requests: turns name them, workers make and renew them, sweepers end them."""
