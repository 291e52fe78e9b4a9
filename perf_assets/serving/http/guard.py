"""Guards in front of the application: the token, and a limit on bodies that is kept while they arrive."""

import asyncio
import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN_PATHS = frozenset({"/health"})
"""Paths that need no token."""
_MOST_DIGITS = 18
"""Digits of a length."""
_BODY_SECONDS = 20.0
"""Seconds in which a body must have arrived."""


class Guard:
    """Refuses requests without the token, bodies that are too large before they are read whole, and slow bodies.

    Without a token only this machine is let in, and only under its own name: a page elsewhere whose name was made to
    point here (DNS rebinding) would come with its own.
    """

    def __init__(self, application: Application, most_bytes: int, token: str | None) -> None:
        self._application = application
        self._most_bytes = most_bytes
        self._expected = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on with its whole body."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if not self._may_enter(scope["path"], headers.get(b"authorization", b"")):
            await _refuse(send, 401, "a token is needed, and this one is missing or wrong: send it as bearer token")
            return
        if self._expected is None and not is_loopback(_host(headers.get(b"host", b"localhost"))):
            await _refuse(send, 421, "without a token the service answers as 127.0.0.1 or localhost only")
            return
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._application(scope, receive, send)
            return
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > _MOST_DIGITS or int(length) > self._most_bytes:
            await self._refuse_large(send)
            return
        try:
            body = await asyncio.wait_for(self._body(receive), _BODY_SECONDS)
        except TimeoutError:
            await _refuse(send, 408, f"the body did not arrive within {_BODY_SECONDS:.0f} s")
            return
        if body is None:
            await self._refuse_large(send)
            return
        await self._application(scope, _replaying(body, receive), send)

    def _may_enter(self, path: str, given: bytes) -> bool:
        if self._expected is None or path in OPEN_PATHS:
            return True
        return hmac.compare_digest(given, self._expected)

    async def _body(self, receive: Receive) -> bytes | None:
        """The body; None as soon as it is found too large."""
        parts, size = [], 0
        while True:
            message = await receive()
            part = message.get("body", b"")
            size += len(part)
            if size > self._most_bytes:
                return None
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)

    async def _refuse_large(self, send: Send) -> None:
        await _refuse(send, 413, f"the body is larger than {self._most_bytes} bytes: ask for fewer runs at a time")


def is_loopback(host: str) -> bool:
    """Whether only this machine can be meant."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _host(header: bytes) -> str:
    """Name or address in a Host header, without the port."""
    text = header.decode("latin-1").strip().lower()
    return text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]


def _replaying(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives a body that has been read, then what comes after it."""
    has_been_given = False

    async def give() -> Message:
        nonlocal has_been_given
        if has_been_given:
            return await receive()
        has_been_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give


async def _refuse(send: Send, status: int, message: str) -> None:
    """Answer and close: what else the client sends is not read."""
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"error": message}).encode()})
