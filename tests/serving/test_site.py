"""The server of pages: files of one folder, and nothing else."""

import http.client
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from perf_assets.serving.site import site_server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("secret")
    made = tmp_path / "reports"
    (made / "inner").mkdir(parents=True)
    (made / "page.html").write_text("<title>Page</title>")
    (made / "figure.png").write_bytes(b"\x89PNG")
    (made / "way_out.txt").symlink_to(tmp_path / "secret.txt")
    return made


@pytest.fixture
def port(folder: Path) -> Iterator[int]:
    with site_server(folder, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def ask(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, str, "http.client.HTTPMessage"]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode(errors="replace"), answer.headers


def test_pages_and_pictures_are_served_and_asked_for_each_time(port: int) -> None:
    status, text, headers = ask(port, "/page.html")
    assert (status, text) == (200, "<title>Page</title>")
    assert headers["Cache-Control"] == "no-cache"
    assert ask(port, "/figure.png")[2]["Content-Type"] == "image/png"
    assert ask(port, "/page.html", "HEAD")[:2] == (200, "")


def test_the_index_is_the_first_page_and_says_where_there_is_none(port: int, folder: Path) -> None:
    assert "no pages yet" in ask(port, "/")[1]
    (folder / "index.html").write_text("the fleet")
    assert ask(port, "/")[:2] == (200, "the fleet")


@pytest.mark.parametrize("path", ["/inner/", "/../secret.txt", "/%2e%2e/secret.txt", "/way_out.txt", "/nothing"])
def test_nothing_else_is(port: int, path: str) -> None:
    status, text, _ = ask(port, path)
    assert status == 404
    assert "secret" not in text.replace("secret.txt", "")


def test_other_names_of_this_machine_and_other_methods_are_refused(port: int) -> None:
    assert ask(port, "/page.html", Host=f"evil.example:{port}")[0] == 403
    assert ask(port, "/page.html", "POST")[0] == 501
