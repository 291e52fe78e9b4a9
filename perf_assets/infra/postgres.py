"""A PostgreSQL database that keeps Dagster's and MLflow's state: its address, and the error when it is away.

The password never is in an address of ours: the client library takes it from PGPASSWORD, or from a file of mode 600
(PGPASSFILE, else ~/.pgpass), in every process that connects. So no file, log or process list of ours can show it.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perf_assets.core.errors import BadInputError, BusyError, DatabaseError
from perf_assets.core.text import without_passwords

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection

_DRIVER = "postgresql+psycopg2"
_LOSSES_ARE_SEEN = {"connect_timeout": "10", "keepalives_idle": "30", "tcp_user_timeout": "30000"}
"""A host that is switched off answers nothing: without these, a connection to it would be waited for very long."""


@dataclass(frozen=True)
class Address:
    """One database, or one schema of it."""

    text: str

    @classmethod
    def given(cls, text: str) -> "Address":
        """Address from the text that a person typed, checked."""
        address = cls(text)
        url = address.url
        if not url.database or not url.username:
            raise BadInputError(f"{address}: name user and database, as in postgresql://USER@HOST/DATABASE")
        if url.password:
            raise BadInputError(
                f"{address} holds a password, which other people's process lists would show: leave it out, and set "
                "PGPASSWORD, or write it into ~/.pgpass (mode 600)"
            )
        return cls(url.render_as_string(hide_password=False))

    @property
    def url(self) -> "URL":
        """Address as SQLAlchemy has it."""
        from sqlalchemy import make_url
        from sqlalchemy.exc import ArgumentError

        try:
            url = make_url(self.text)
        except (ArgumentError, ValueError):
            raise BadInputError("this is no address of a database: give postgresql://USER@HOST/DATABASE") from None
        if not is_postgres(url.drivername):
            raise BadInputError(f"{url.drivername} is no PostgreSQL: give postgresql://USER@HOST/DATABASE")
        if url.host != make_url(without_passwords(self.text)).host:
            raise BadInputError(
                "the password in the address of a database has letters to be written as %40 (@), %2F (/)"
            )
        # The driver that SQLAlchemy would choose by itself is another one.
        return url if "+" in url.drivername else url.set(drivername=_DRIVER)

    def in_schema(self, schema: str) -> str:
        """Address of one schema, whose tables have names that those of another may have too."""
        given = self.url.query.get("options", "")
        query = {**_LOSSES_ARE_SEEN, **self.url.query, "options": f"{given} -csearch_path={schema}".strip()}
        return self.url.set(query=query).render_as_string(hide_password=False)

    def __str__(self) -> str:
        """Address for people, without a password."""
        url = self.url
        query = {name: value for name, value in url.query.items() if name in ("host", "port")}
        # `set` would take None for "as it is".
        shown = url._replace(password=None).set(drivername="postgresql", query=query)
        return shown.render_as_string(hide_password=False)

    @contextmanager
    def connected(self) -> Iterator["Connection"]:
        """A connection that commits every statement; one clear line where there is none."""
        from sqlalchemy import create_engine
        from sqlalchemy.exc import OperationalError
        from sqlalchemy.pool import NullPool

        try:
            engine = create_engine(
                self.url,
                poolclass=NullPool,
                isolation_level="AUTOCOMMIT",
                connect_args={**_LOSSES_ARE_SEEN, "connect_timeout": "5", "application_name": "perf-assets"},
            )
        except ModuleNotFoundError as error:
            raise BadInputError(f"{error}: install it with pip install 'perf_assets[postgres]'") from None
        try:
            with engine.connect() as connection:
                yield connection
        except OperationalError as error:
            raise DatabaseError(f"{self} cannot be used ({_why(error)}): {_advice(error)}") from None

    def check(self) -> None:
        """Raise one clear line where the database cannot be used."""
        with self.connected():
            pass

    def make_schemas(self, *schemas: str) -> None:
        """Make schemas that are not there yet."""
        from sqlalchemy import text
        from sqlalchemy.exc import ProgrammingError

        try:
            with self.connected() as connection, self.locked("schemas"):
                # Not with IF NOT EXISTS, which asks for the right to create also where the schema is there.
                there = set(connection.execute(text("SELECT nspname FROM pg_namespace")).scalars())
                for schema in schemas:
                    if schema not in there:
                        connection.execute(text(f"CREATE SCHEMA {schema}"))
        except ProgrammingError as error:
            raise DatabaseError(
                f"{self} cannot be used ({_why(error)}): let its owner GRANT CREATE ON DATABASE"
            ) from None

    @contextmanager
    def locked(self, purpose: str) -> Iterator[None]:
        """Hold a lock among all processes of all hosts that use the database; it goes with the connection."""
        from sqlalchemy import text

        with self.connected() as connection:
            connection.execute(text("SELECT pg_advisory_lock(hashtext(:purpose))"), {"purpose": purpose})
            yield


class LeaseClaim:
    """A lock of the database that is to be held for hours, through losses of the database."""

    def __init__(self, address: Address, purpose: str) -> None:
        self._address = address
        self._purpose = purpose
        self._held: Connection | None = None
        self._opened = address.connected()

    def hold(self) -> None:
        """Take the lock, or see that it still is held; raises where the database is away or another has the lock."""
        from sqlalchemy import text
        from sqlalchemy.exc import DBAPIError

        if self._held is not None:
            with suppress(DBAPIError):
                self._held.execute(text("SELECT 1"))
                return
            self.release()
        self._opened = self._address.connected()
        connection = self._opened.__enter__()
        taken = text("SELECT pg_try_advisory_lock(hashtext(:purpose))")
        if connection.execute(taken, {"purpose": self._purpose}).scalar_one():
            self._held = connection
            return
        self._opened.__exit__(None, None, None)
        raise BusyError(f"{self._purpose} is running already, here or on another host, with {self._address}")

    def release(self) -> None:
        """Release the lock."""
        if self._held is not None:
            self._held = None
            with suppress(DatabaseError):
                self._opened.__exit__(None, None, None)


def is_postgres(text: str) -> bool:
    """Whether an address is one of PostgreSQL."""
    return text.split(":")[0].split("+")[0] in ("postgresql", "postgres")


def in_dagster_yaml(text: str, url: str | None) -> str:
    """A dagster.yaml that names this database, or none, with everything else in it as it is."""
    import yaml

    kept, is_storage = [], False
    for line in text.splitlines():
        if line[:1] not in ("", " ", "#", "\t"):
            is_storage = line.startswith("storage:")
        if not is_storage:
            kept.append(line)
    text = "\n".join(kept).rstrip() + "\n"
    if url is None:
        return text
    return f"{text}\n{yaml.safe_dump({'storage': {'postgres': {'postgres_url': url}}}, width=1000)}"


def told_of_loss(error: BaseException) -> str:
    """One line for what goes wrong while the database is in use."""
    return f"PostgreSQL went away ({_why(error)}): {_advice(error)}; then do this again"


def _why(error: BaseException) -> str:
    """Message of the server or the client library, in one line and without its hints."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


def _advice(error: BaseException) -> str:
    message = str(error)
    if "password" in message:
        return "set PGPASSWORD, or write the password into ~/.pgpass (mode 600)"
    if "does not exist" in message:
        return "create it, as with createdb"
    return "start the server, or look at host, port and network"
