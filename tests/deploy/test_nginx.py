"""The example of nginx before a small server: passwords, foreign pages, web sockets and what is passed on."""

import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.installation import PROJECT

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]
EXAMPLE = PROJECT / "deploy" / "nginx" / "perf-assets.conf"
NGINX = shutil.which("nginx") or ("/usr/sbin/nginx" if Path("/usr/sbin/nginx").is_file() else None)
WORD = "a-secret-of-many-letters"
SITES = {"dagster": 3000, "mlflow": 5000, "pages": 4000, "predict": 8000}


class Echo(BaseHTTPRequestHandler):
    """What arrives, told back."""

    def do_GET(self) -> None:
        body = json.dumps({name.lower(): value for name, value in self.headers.items()}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Nginx with the example's configuration, in which only places and ports are others."""
    if NGINX is None or shutil.which("openssl") is None:
        pytest.skip("no nginx: install Debian's packages 'nginx-light' and 'openssl'")
    folder = tmp_path_factory.mktemp("nginx")
    folder.chmod(0o755)
    number, server = free_port(), ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    key = ["-newkey", "rsa:2048", "-nodes", "-keyout", folder / "perf-assets.key", "-out", folder / "perf-assets.crt"]
    subprocess.run(
        ["openssl", "req", "-x509", "-subj", "/CN=example.org", "-days", "2", *key], check=True, capture_output=True
    )
    made = subprocess.run(["openssl", "passwd", "-apr1", WORD], check=True, capture_output=True, text=True).stdout
    (folder / "perf-assets.htpasswd").write_text(f"ada:{made.strip()}\n")
    text = (
        EXAMPLE.read_text()
        .replace("/etc/nginx/", f"{folder}/")
        .replace("listen 443 ssl", f"listen 127.0.0.1:{number} ssl")
    )
    for site in SITES.values():
        text = text.replace(
            f"proxy_pass http://127.0.0.1:{site}", f"proxy_pass http://127.0.0.1:{server.server_address[1]}"
        )
    (folder / "site.conf").write_text(text)
    places = "\n".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user} daemon off; pid {folder}/pid; error_log {folder}/log; worker_processes 1;\n"
        f"events {{}}\nhttp {{ access_log off; {places}\ninclude {folder}/site.conf; }}\n"
    )
    process = subprocess.Popen([NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "log")])
    try:
        for _ in range(200):
            assert process.poll() is None, (folder / "log").read_text()
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", number)) == 0:
                    break
            time.sleep(0.1)
        yield number
    finally:
        process.terminate()
        process.wait(30)
        server.shutdown()
        server.server_close()


def ask(
    port: int, site: str, method: str = "GET", *, word: str | None = WORD, **headers: str
) -> tuple[int, dict[str, str]]:
    """Status, and what the server behind was told."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=trusting, timeout=30)
    given = {} if word is None else {"Authorization": f"Basic {b64encode(f'ada:{word}'.encode()).decode()}"}
    connection.request(method, "/graphql", headers={"Host": f"{site}.example.org", **given, **headers})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, json.loads(body) if answer.status == 200 else {}


@pytest.mark.parametrize("site", ["dagster", "mlflow", "pages"])
def test_pages_ask_for_a_password_that_goes_no_further(port: int, site: str) -> None:
    assert ask(port, site, word=None)[0] == 401
    assert ask(port, site, word="another")[0] == 401
    status, told = ask(port, site)
    assert status == 200
    assert "authorization" not in told
    assert told["host"] == f"127.0.0.1:{SITES[site]}", "the name under which the page answers"


@pytest.mark.parametrize("site", ["dagster", "mlflow"])
def test_pages_of_others_cannot_use_it(port: int, site: str) -> None:
    own = f"https://{site}.example.org"
    assert ask(port, site, "POST", Origin=own)[0] == 200
    for other in (
        "https://evil.example.com",
        f"{own}.evil.example.com",
        "http://" + own[8:],
        "null",
        "https://mlflow.x",
    ):
        assert ask(port, site, "POST", Origin=other)[0] == 403, other


def test_web_sockets_are_passed_on(port: int) -> None:
    _, told = ask(port, "dagster", Upgrade="websocket", Connection="Upgrade")
    assert (told["upgrade"], told["connection"]) == ("websocket", "upgrade")
    assert "upgrade" not in ask(port, "dagster")[1]


def test_the_service_sees_its_own_token(port: int) -> None:
    status, told = ask(port, "predict", "POST", word=None, Authorization=f"Bearer {WORD}")
    assert (status, told["authorization"], told["host"]) == (200, f"Bearer {WORD}", "predict.example.org")
