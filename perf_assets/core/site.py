"""Settings of a site, `site.yaml` in the lake: alerts, retention, addresses, health of machines."""

import re
from datetime import date
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from perf_assets.core.yaml_text import read_settings

FILE_NAME = "site.yaml"
EXAMPLE = """\
# What this site wants to be told, and how long it keeps models. 'perf-assets alerts --test' tries the addresses.

# owners: [team:performance, ada@example.org]        # of the assets, on the Dagster page

# alerts:
#   webhook: https://chat.example.org/hooks/perf     # gets {"text": ..., "alerts": [...]}
#   mail:
#     to: [perf-team@example.org]
#     sender: perf-assets@example.org
#     server: smtp.example.org
#     port: 587
#     user: perf-assets                              # with the password in PERF_ASSETS_SMTP_PASSWORD
#     starttls: true
#   repeat_hours: 24                                 # what is still wrong is told again after so long
#   disk_free_gb: 5

# addresses:                                         # where people find the pages, behind a proxy; links lead there
#   dagster: https://dagster.example.org
#   mlflow: https://mlflow.example.org
#   pages: https://pages.example.org

# health:
#   accepted: {dane: 2026-11-03}                     # what changed on a machine up to that day is as it should be

# retention:                                         # of 'perf-assets prune'
#   versions: 5                                      # newest versions of a model that are kept in any case
#   days: 180                                        # what is younger is kept
"""


def _check_address(text: str) -> str:
    url = urlsplit(text)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError("no address: give http://… or https://…")
    return text


def _check_mail(text: str) -> str:
    name, _, host = text.partition("@")
    if not (name and host and text.isprintable()) or any(letter in text for letter in " ,;<>"):
        raise ValueError(f"{text[:60]!a} is no mail address: give NAME@HOST")
    return text


def _check_owner(text: str) -> str:
    name, _, host = text.partition("@")
    if not re.fullmatch(r"team:\w+", text) and not (name and host and " " not in text and text.isprintable()):
        raise ValueError(f"{text[:60]!a} is no owner: give team:NAME or NAME@HOST")
    return text


_Mail = Annotated[str, AfterValidator(_check_mail)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MailSettings(_Section):
    """Mails, by a server that takes them."""

    to: tuple[_Mail, ...] = Field(min_length=1)
    sender: _Mail
    server: str = Field(min_length=1)
    port: int = Field(default=25, ge=1, le=65535)
    user: str | None = None
    starttls: bool = False


class AlertSettings(_Section):
    """Recipients of alerts, and when alerts are sent."""

    webhook: Annotated[str, AfterValidator(_check_address)] | None = None
    mail: MailSettings | None = None
    repeat_hours: float = Field(default=24.0, gt=0)
    disk_free_gb: float = Field(default=5.0, ge=0)

    @property
    def webhook_host(self) -> str:
        """The hook without what is secret in it."""
        return urlsplit(self.webhook or "").netloc.rpartition("@")[2]


class RetentionSettings(_Section):
    """Versions and runs that `perf-assets prune` always keeps, beside those in use."""

    versions: int = Field(default=5, ge=1)
    days: int = Field(default=180, ge=1)


_Url = Annotated[str, AfterValidator(_check_address)]


class AddressSettings(_Section):
    """Addresses of the pages for people, where a proxy is in front of them."""

    dagster: _Url | None = None
    mlflow: _Url | None = None
    pages: _Url | None = None


class HealthSettings(_Section):
    """Knowledge about the performance of machines."""

    accepted: dict[str, date] = {}
    """Day per machine up to which changes of its speed are as they should be."""


_Owner = Annotated[str, AfterValidator(_check_owner)]


class Site(_Section):
    """Content of `site.yaml`."""

    owners: tuple[_Owner, ...] = Field(default=("team:performance",), min_length=1)
    """Owners of the assets in Dagster."""
    addresses: AddressSettings = AddressSettings()
    alerts: AlertSettings = AlertSettings()
    health: HealthSettings = HealthSettings()
    retention: RetentionSettings = RetentionSettings()


def load_site(lake: Path) -> Site:
    """Read the site file of a lake's root folder; the defaults where there is none."""
    return read_settings(Site, lake / FILE_NAME)
