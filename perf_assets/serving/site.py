"""Server of the pages in the lake's folder of reports, on loopback: files of that folder, and nothing else."""

import io
import sys
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
_OWN_NAMES = {HOST, "localhost"}
_NO_PAGES = "There are no pages yet: they come with the first data, or with 'perf-assets report'.\n"


class SiteHandler(SimpleHTTPRequestHandler):
    """GET and HEAD of plain files in one folder: no list of them, no way out of it."""

    server_version = "perf_assets"
    sys_version = ""

    def send_head(self) -> Any:
        """The opened file, after its headers; None after a refusal."""
        if self.headers.get("Host", "").rpartition(":")[0] not in _OWN_NAMES:
            # A page elsewhere whose name was made to mean this machine must not read these.
            self.send_error(HTTPStatus.FORBIDDEN)
            return None
        folder = Path(self.directory).resolve()
        path = Path(self.translate_path(self.path))
        if path.resolve() == folder and not (folder / "index.html").is_file():
            return self._say(_NO_PAGES)
        if not path.resolve().is_relative_to(folder):
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()

    def list_directory(self, path: Any) -> None:
        """Refuse: what may be read is linked."""
        self.send_error(HTTPStatus.NOT_FOUND)

    def end_headers(self) -> None:
        """Let browsers ask each time: pages are written again under their names."""
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def _say(self, text: str) -> Any:
        content = text.encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        return io.BytesIO(content)


def site_server(folder: Path, port: int) -> ThreadingHTTPServer:
    """A server of a folder that is bound to a port of this machine alone; 0 takes a free one."""
    return ThreadingHTTPServer((HOST, port), partial(SiteHandler, directory=str(folder)))


if __name__ == "__main__":
    site_server(Path(sys.argv[1]), int(sys.argv[2])).serve_forever()
