"""TLS to Postgres by the parameters of libpq: what is checked, by which authorities, and which certificate is shown."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final

PARAMETERS: Final = frozenset({"ssl", "sslrootcert", "sslcert", "sslkey"})
MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_VERIFYING: Final = frozenset({"verify-ca", "verify-full"})
SYSTEM_AUTHORITIES: Final = "system"


def tls_of(query: Mapping[str, str | Sequence[str]]) -> dict[str, Any]:
    """The driver's argument for an address's parameters; none if the address has no such parameters.

    ``ssl`` (``sslmode``) is a mode of libpq. ``sslrootcert`` is a file of certificates, or ``system``; with it
    ``require`` checks as ``verify-ca`` does. ``sslcert`` and ``sslkey`` are the service's own.

    Raises:
        ValueError: A mode, a file or a combination is impossible; the message is one line.
    """
    given = {name: str(query[name]) for name in PARAMETERS if name in query}
    if not given:
        return {}
    mode, authorities = given.get("ssl", "prefer"), given.get("sslrootcert")
    if mode not in MODES:
        raise ValueError(f"DATABASE_URL: sslmode must be one of {', '.join(MODES)}, not {mode}")
    if not given.keys() - {"ssl"} and mode not in _VERIFYING:
        return {"ssl": mode}
    if mode not in _VERIFYING | {"require"}:
        files = " and ".join(sorted(given.keys() - {"ssl"}))
        raise ValueError(f"DATABASE_URL: {files} need sslmode=verify-full, verify-ca or require, not {mode}")
    if mode in _VERIFYING and authorities is None:
        raise ValueError(f"DATABASE_URL: sslmode={mode} needs sslrootcert=FILE, or sslrootcert={SYSTEM_AUTHORITIES}")
    return {"ssl": _ssl_context(mode, authorities, given.get("sslcert"), given.get("sslkey"))}


def _ssl_context(mode: str, authorities: str | None, certificate: str | None, key: str | None) -> ssl.SSLContext:
    context = (
        ssl.create_default_context() if authorities == SYSTEM_AUTHORITIES else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    )
    context.check_hostname = mode == "verify-full"
    if authorities is None:
        context.verify_mode = ssl.CERT_NONE
    elif authorities != SYSTEM_AUTHORITIES:
        try:
            context.load_verify_locations(cafile=authorities)
        except (OSError, ssl.SSLError) as error:
            raise ValueError(_unreadable("sslrootcert", authorities, error)) from None
    if certificate is not None:
        try:
            context.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            files = certificate if key is None else f"{certificate} with sslkey {key}"
            raise ValueError(_unreadable("sslcert", files, error)) from None
    return context


def _unreadable(name: str, file: str, error: OSError) -> str:
    # An error of TLS is an OSError too, with its own number and name.
    why = "it is no PEM file that fits" if isinstance(error, ssl.SSLError) else error.strerror
    return f"DATABASE_URL: {name} cannot be read: {file} ({why})"
