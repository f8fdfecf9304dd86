"""TLS before a server that speaks none: certificates made on the spot, and a front that ends TLS and forwards."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_POSTGRES_ASKS = 8  # bytes of SSLRequest


@dataclass(frozen=True, slots=True)
class Certificate:
    """The files of a self-signed certificate, for 127.0.0.1 alone."""

    certificate: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        """The TLS context of a server with this certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context


def make_certificate(folder: Path, name: str) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    made = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
    made.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    made.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return made


@contextlib.asynccontextmanager
async def front(socket: str, context: ssl.SSLContext, *, asked_first: bool) -> AsyncIterator[int]:
    """A port that speaks TLS and forwards to a Unix socket; for Postgres, after a question without TLS."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            if asked_first:
                await reader.readexactly(_POSTGRES_ASKS)
                writer.write(b"S")
                await writer.drain()
                await writer.start_tls(context)
            there_reader, there_writer = await asyncio.open_unix_connection(socket)
            await asyncio.gather(_pass(reader, there_writer), _pass(there_reader, writer))
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=None if asked_first else context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(65_536):
            writer.write(chunk)
            await writer.drain()
    writer.close()
