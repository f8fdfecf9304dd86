"""``throughline``: the command line, and what starts and watches the processes of the service."""

# The imports below take seconds where nothing is cached: Ctrl-C ends them as it ends a command, without a traceback.
try:
    from app.cli.commands import app
except KeyboardInterrupt:
    raise SystemExit(130) from None

__all__ = ["app"]
