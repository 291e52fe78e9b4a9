"""Services while their database is away: they may end, and are started again when it is back."""

import time
from collections.abc import Sequence

from perf_assets.cli.support.output import say
from perf_assets.cli.support.services import Service
from perf_assets.core.errors import DatabaseError
from perf_assets.infra.postgres import Address, Claim

_AFTERMATH_SECONDS = 120.0
"""So long after an outage a service may still end of it: Dagster tries to connect again for a while."""


class Keeper:
    """Keeps services running, and the right to be the only `up` on their database, if they have one."""

    def __init__(self, database: str | None) -> None:
        self._claim = None if database is None else Claim(Address(database), "perf-assets up")
        self._lost_at: float | None = None
        self._is_away = False

    def __enter__(self) -> "Keeper":
        if self._claim is not None:
            self._claim.hold()
        return self

    def __exit__(self, *_: object) -> None:
        if self._claim is not None:
            self._claim.release()

    def look_after(self, services: Sequence[Service]) -> None:
        """Start again what has ended, unless the database is away: then when it is back."""
        if self._database_is_away():
            return
        recently = self._lost_at is not None and time.monotonic() - self._lost_at < _AFTERMATH_SECONDS
        for service in services:
            revived = service.revive(is_blamed=not recently)
            if revived is not None:
                say(revived)

    def _database_is_away(self) -> bool:
        if self._claim is None:
            return False
        try:
            self._claim.hold()
        except DatabaseError as error:
            self._lost_at = time.monotonic()
            if not self._is_away:
                say(f"{error}. What runs goes on when it is back.")
            self._is_away = True
            return True
        if self._is_away:
            say("The database is back.")
        self._is_away = False
        return False
