"""MLflow's page as `up` serves it: runs and registry, without the assistant, which could run commands on this host."""

import json
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from mlflow.server.constants import ARTIFACT_ROOT_ENV_VAR, BACKEND_STORE_URI_ENV_VAR, REGISTRY_STORE_URI_ENV_VAR

from perf_assets.core.paths import lake_root

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_ASSISTANT = "/ajax-api/3.0/mlflow/assistant"
_DEFAULTS = {
    "mlflow.workflowType_v1": "machine_learning",
    "mlflow.settings.telemetry.enabled_v1": False,
    "mlflow.telemetry.info.alert.dismissed_v1": True,
    "mlflow.assistant.fab.autoOpenedOnFirstLoad_v1": True,
    "_mlflow_model_registry_promo_modal_dismissed_v1": True,
}
"""Defaults of a browser whose user has chosen nothing: models instead of chats, no usage data, no advert."""
_IN_HEAD = (
    # The assistant's panel and all its buttons have this attribute.
    "<style>[data-assistant-ui]{display:none!important}</style>"
    f"<script>for(const [key,value] of Object.entries({json.dumps(_DEFAULTS)}))"
    "if(localStorage.getItem(key)===null)localStorage.setItem(key,JSON.stringify(value));"
    # MLflow's own first page offers tracing, prompts and a gateway to language models.
    "if(!location.hash)location.hash='#/models'</script><script"
)
_ABOUT_COPIES = (b"if-none-match", b"if-modified-since")


def create_app() -> "WithoutAssistant":
    """The application over the store that the environment names, for uvicorn."""
    store = os.environ["MLFLOW_BACKEND_STORE_URI"]
    os.environ[BACKEND_STORE_URI_ENV_VAR] = os.environ[REGISTRY_STORE_URI_ENV_VAR] = store
    os.environ[ARTIFACT_ROOT_ENV_VAR] = (lake_root() / "mlflow" / "artifacts").as_uri()
    from mlflow.server.fastapi_app import app

    return WithoutAssistant(app)


class WithoutAssistant:
    """MLflow's own application; its assistant is not shown and does not answer."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as MLflow does, but for the assistant."""
        if scope["type"] == "http" and scope["path"].startswith(_ASSISTANT):
            await send({"type": "http.response.start", "status": 404, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
        elif scope["type"] == "http" and scope["path"] == "/":
            await self._front_page(scope, receive, send)
        else:
            await self._application(scope, receive, send)

    async def _front_page(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The one page of MLflow's program, with the assistant hidden, and defaults set before the program starts."""
        start: Message = {}
        parts: list[bytes] = []

        async def hold(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                page = b"".join(parts).replace(b"<script", _IN_HEAD.encode(), 1)
                kept = [pair for pair in start["headers"] if pair[0].lower() != b"content-length"]
                await send({**start, "headers": [*kept, (b"content-length", b"%d" % len(page))]})
                await send({"type": "http.response.body", "body": page})

        # A browser's copy may be of a server that showed the assistant.
        asked = [pair for pair in scope["headers"] if pair[0].lower() not in _ABOUT_COPIES]
        await self._application({**scope, "headers": asked}, receive, hold)
