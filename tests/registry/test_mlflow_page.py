"""MLflow's page without its assistant."""

import asyncio
from typing import Any

from perf_assets.registry.mlflow_page import Message, Receive, Scope, Send, WithoutAssistant

PAGE = b"<html><head><title>MLflow</title><script src=main.js></script></head><body></body></html>"


def asked(path: str, headers: list[tuple[bytes, bytes]] | None = None) -> tuple[int, dict[bytes, bytes], bytes, Any]:
    """Status, headers and body of the answer, and the headers that the application saw."""
    sent: list[Message] = []
    seen: list[Any] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend(scope["headers"])
        length = (b"Content-Length", b"%d" % len(PAGE))
        await send({"type": "http.response.start", "status": 200, "headers": [length, (b"etag", b"1")]})
        await send({"type": "http.response.body", "body": PAGE[:20], "more_body": True})
        await send({"type": "http.response.body", "body": PAGE[20:]})

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "path": path, "headers": headers or []}
    asyncio.run(WithoutAssistant(application)(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], dict(sent[0]["headers"]), body, seen


def test_the_page_hides_the_assistant() -> None:
    status, headers, body, _ = asked("/")
    assert status == 200
    assert b"[data-assistant-ui]{display:none!important}" in body
    assert body.index(b"machine_learning") < body.index(b"src=main.js"), "set before the program starts"
    assert b"if(!location.hash)location.hash='#/models'" in body, "models first, not the tour of a chat product"
    assert int(headers[b"content-length"]) == len(body) > len(PAGE)
    assert headers[b"etag"] == b"1"


def test_a_browsers_own_copy_is_not_taken_to_be_good() -> None:
    *_, seen = asked("/", [(b"if-none-match", b"1"), (b"host", b"127.0.0.1")])
    assert seen == [(b"host", b"127.0.0.1")]


def test_the_assistant_does_not_answer() -> None:
    status, _, body, seen = asked("/ajax-api/3.0/mlflow/assistant/message")
    assert (status, body, seen) == (404, b"", [])


def test_all_else_is_as_mlflow_answers() -> None:
    assert asked("/static-files/static/js/main.js")[2] == PAGE
