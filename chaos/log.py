"""What happened: lines for people while it runs, and one JSON object a line in a file for later."""

import json
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class Log:
    """Of one run of chaos; several threads write into it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._started = time.monotonic()
        self._lock = threading.Lock()

    def seconds(self) -> float:
        """Since the log was begun."""
        return time.monotonic() - self._started

    def note(self, what: str, **facts: Any) -> None:
        """Into the file alone."""
        entry = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "what": what, **facts}
        with self._lock, self._file.open("a", encoding="utf-8") as output:
            output.write(json.dumps(entry, default=str) + "\n")

    def say(self, what: str, line: str, **facts: Any) -> None:
        """Into the file, and as a line for people."""
        self.note(what, line=line, **facts)
        minutes, seconds = divmod(int(self.seconds()), 60)
        sys.stdout.write(f"{minutes:02d}:{seconds:02d}  {what:<12} {line}\n")
        sys.stdout.flush()
