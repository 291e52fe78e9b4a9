"""Receivers of alerts on this machine: a web hook over HTTP and a mail server."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


@dataclass
class Received:
    """What came in."""

    port: int = 0
    documents: list[dict[str, Any]] = field(default_factory=list)
    mails: list[Message] = field(default_factory=list)
    status: int = 200
    """What the web hook answers."""


@contextmanager
def web_hook() -> Iterator[Received]:
    """A server that takes JSON."""
    received = Received()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if received.status == 200:
                received.documents.append(json.loads(body))
            self.send_response(received.status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        received.port = server.server_address[1]
        yield from _serving(server, received)


@contextmanager
def mail_server() -> Iterator[Received]:
    """A server that speaks as much SMTP as a client needs to hand in a mail."""
    received = Received()

    class Mails(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 here")
            while line := self.rfile.readline():
                word = line.split(b" ")[0].strip().upper()
                if word == b"DATA":
                    self._say("354 go on")
                    received.mails.append(message_from_bytes(b"".join(self._lines())))
                self._say("221 bye" if word == b"QUIT" else "250 yes")

        def _lines(self) -> Iterator[bytes]:
            while (line := self.rfile.readline()) != b".\r\n":
                yield line

        def _say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

    with socketserver.TCPServer(("127.0.0.1", 0), Mails) as server:
        received.port = server.server_address[1]
        yield from _serving(server, received)


def _serving(server: socketserver.BaseServer, received: Received) -> Iterator[Received]:
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        thread.join()
