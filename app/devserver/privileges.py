"""Finds a way for root to run PostgreSQL, which refuses to run as root."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from app.devserver.errors import EmbeddedError
from app.devserver.processes import runs


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The user that a program runs as: a prefix for its command, and who then owns its files."""

    prefix: tuple[str, ...]
    uid: int


def identities() -> list[Identity]:
    """List the ways to try, best first: one for a plain user, two for root.

    A user namespace shows root's own files as another user's and needs no change of owner. If a container forbids
    namespaces, ``nobody`` keeps the one capability that lets it reach a data folder and an environment below a closed
    home folder.
    """
    if os.geteuid() != 0:
        return [Identity(prefix=(), uid=os.geteuid())]
    namespace = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--")
    nobody = pwd.getpwnam("nobody")
    dropped = (
        "setpriv",
        f"--reuid={nobody.pw_uid}",
        f"--regid={nobody.pw_gid}",
        "--clear-groups",
        "--inh-caps=+dac_override",
        "--ambient-caps=+dac_override",
        "--",
    )
    return [Identity(prefix=namespace, uid=0), Identity(prefix=dropped, uid=nobody.pw_uid)]


def choose_identity(postgres: Path) -> Identity:
    """Return the first way in which the program really starts."""
    for identity in identities():
        if runs([*identity.prefix, str(postgres), "--version"]):
            return identity
    if os.geteuid() == 0:
        raise EmbeddedError("PostgreSQL does not run as root here: start as a plain user, or set DATABASE_URL.")
    raise EmbeddedError(f"{postgres} does not start on this machine: set DATABASE_URL to use another PostgreSQL.")


def take_ownership(folder: Path, identity: Identity) -> None:
    """Give an existing data folder to the chosen identity, since root may have changed between the two ways."""
    owner = folder.stat().st_uid
    if owner == identity.uid:
        return
    ours = {candidate.uid for candidate in identities()}
    if owner not in ours:
        name = _user_name(owner)
        raise EmbeddedError(
            f"{folder} belongs to {name}: start as that user, or set THROUGHLINE_DATA_DIR to another folder."
        )
    for parent, folders, files in os.walk(folder):
        for name in (".", *folders, *files):
            os.chown(Path(parent) / name, identity.uid, -1, follow_symlinks=False)


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
