"""Default environments that a person chose, by machine: `environments.yaml` in the lake."""

from collections.abc import Mapping
from typing import Annotated

import yaml
from pydantic import AfterValidator, RootModel

from perf_assets.core.environment import check_environment
from perf_assets.core.errors import BadInputError
from perf_assets.core.machines import check_machine_id
from perf_assets.core.yaml_text import read_settings
from perf_assets.infra.files import write_bytes
from perf_assets.infra.locks import exclusive
from perf_assets.storage.lake import Lake

ENVIRONMENTS_NAME = "environments.yaml"
_LOCK_SECONDS = 60.0
_HEAD = "# Software that counts on each machine: parts of its line, or its digest. See 'perf-assets environments'.\n"


def _checked(environment: str) -> str:
    try:
        return check_environment(environment)
    except BadInputError as error:
        raise ValueError(str(error)) from None


class _NamedEnvironments(RootModel[dict[str, str]]):
    """Content of `environments.yaml`."""

    root: dict[Annotated[str, AfterValidator(check_machine_id)], Annotated[str, AfterValidator(_checked)]] = {}


def named_environments(lake: Lake) -> dict[str, str]:
    """Named defaults by machine; none where the lake has no file of them."""
    return read_settings(_NamedEnvironments, lake.root / ENVIRONMENTS_NAME).root


def name_environment(lake: Lake, machine: str, environment: str | None) -> None:
    """Let an environment be the default of a machine; None forgets the one that was named."""
    with exclusive(lake.locks / "environments.lock", f"writing {ENVIRONMENTS_NAME}", _LOCK_SECONDS):
        named: Mapping[str, str] = {**named_environments(lake), machine: environment or ""}
        document = {name: text for name, text in sorted(named.items()) if text}
        text = _HEAD + yaml.safe_dump(document, allow_unicode=True, width=1000)
        write_bytes(lake.root / ENVIRONMENTS_NAME, text.encode())
