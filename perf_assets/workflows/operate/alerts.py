"""Telling people what is wrong: once, and again only while it stays wrong; by web hook and mail."""

import json
import os
import shutil
import smtplib
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from email.message import EmailMessage
from pathlib import Path

from perf_assets.core.errors import BadInputError
from perf_assets.core.site import AlertSettings, MailSettings
from perf_assets.core.text import printable

SENT_WITH = "PERF_ASSETS_SMTP_PASSWORD"
"""Variable of the environment that holds the password of the mail server's user."""
_SECONDS = 10.0
_MOST_WAITING = 100
_MOST_CHARACTERS = 500


@dataclass(frozen=True)
class Alert:
    """Something that is wrong."""

    key: str
    """Subject of the alert, which is sent once while the problem lasts."""
    title: str
    text: str = ""
    link: str = ""

    @property
    def line(self) -> str:
        """The whole of it in one line."""
        text = ": ".join(part for part in (self.title, self.text) if part)[:_MOST_CHARACTERS]
        return printable(" ".join(f"{text} {self.link}".split()))


@dataclass
class AlertLog:
    """Memory of alerts: when each was sent, and which could not be sent yet."""

    told_at: dict[str, float] = field(default_factory=dict)
    """Seconds of the clock, by key."""
    waiting: dict[str, list[Alert]] = field(default_factory=dict)
    """Alerts that a channel has not taken yet."""

    @classmethod
    def of(cls, document: dict[str, object]) -> "AlertLog":
        """Log from the text that `document` wrote."""
        told_at, waiting = document.get("told_at", {}), document.get("waiting", {})
        assert isinstance(told_at, dict)
        assert isinstance(waiting, dict)
        return cls(told_at, {channel: [Alert(**alert) for alert in alerts] for channel, alerts in waiting.items()})

    def document(self) -> dict[str, object]:
        """Plain data, for JSON."""
        return asdict(self)

    def note(self, alerts: Iterable[Alert], settings: AlertSettings, now: float) -> list[Alert]:
        """Keep the alerts that are to be sent now, for every channel; those that were sent lately are left out."""
        due = {
            alert.key: alert
            for alert in alerts
            if now - self.told_at.get(alert.key, -1e18) >= 3600 * settings.repeat_hours
        }
        self.told_at |= dict.fromkeys(due, now)
        channels = channels_of(settings)
        self.waiting = {channel: [*self.waiting.get(channel, []), *due.values()] for channel in channels}
        return list(due.values())

    def settle(self, keys: Iterable[str]) -> None:
        """Forget problems that are solved: if they come back, an alert is sent at once."""
        for key in keys:
            self.told_at.pop(key, None)

    def deliver(self, settings: AlertSettings) -> list[str]:
        """Send the waiting alerts; gives the errors of channels, whose alerts wait for the next time."""
        problems = []
        for channel, send in channels_of(settings).items():
            alerts = self.waiting.get(channel, [])
            if not alerts:
                continue
            try:
                send(alerts)
            except BadInputError as error:
                problems.append(str(error))
                self.waiting[channel] = alerts[-_MOST_WAITING:]
            else:
                self.waiting[channel] = []
        return problems


def channels_of(settings: AlertSettings) -> dict[str, Callable[[Sequence[Alert]], None]]:
    """Channels for alerts, by name."""
    ways: dict[str, Callable[[Sequence[Alert]], None]] = {}
    if settings.webhook is not None:
        ways["webhook"] = lambda alerts: _post(settings, alerts)
    if settings.mail is not None:
        mail = settings.mail
        ways["mail"] = lambda alerts: _mail(mail, alerts)
    return ways


def full_disks(places: Iterable[Path], settings: AlertSettings) -> tuple[list[Alert], list[str]]:
    """An alert for each place with less space than the site wants, and the keys of the others."""
    wrong, right = [], []
    for place in places:
        key, free = f"disk:{place}", shutil.disk_usage(place).free / 1e9
        if free < settings.disk_free_gb:
            wrong.append(Alert(key, f"{free:.1f} GB are free at {place}", f"less than {settings.disk_free_gb:g} GB"))
        else:
            right.append(key)
    return wrong, right


def _post(settings: AlertSettings, alerts: Sequence[Alert]) -> None:
    document = {"text": "\n".join(alert.line for alert in alerts), "alerts": [asdict(alert) for alert in alerts]}
    request = urllib.request.Request(
        settings.webhook or "", json.dumps(document).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as response:
            response.read(1000)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise BadInputError(
            f"the web hook at {settings.webhook_host} does not take alerts ({reason}): see alerts.webhook in site.yaml"
        ) from None


def _mail(settings: MailSettings, alerts: Sequence[Alert]) -> None:
    message = EmailMessage()
    more = f" and {len(alerts) - 1} more" if len(alerts) > 1 else ""
    message["Subject"] = f"perf-assets: {printable(alerts[0].title)[:120]}{more}"
    message["From"], message["To"] = settings.sender, ", ".join(settings.to)
    message.set_content("\n\n".join(alert.line for alert in alerts) + "\n")
    try:
        with smtplib.SMTP(settings.server, settings.port, timeout=_SECONDS) as server:
            if settings.starttls:
                server.starttls(context=ssl.create_default_context())
            if settings.user is not None:
                server.login(settings.user, os.environ.get(SENT_WITH, ""))
            server.send_message(message)
    except (OSError, smtplib.SMTPException) as error:
        raise BadInputError(
            f"the mail server {settings.server}:{settings.port} does not take alerts ({error}): see alerts.mail in "
            f"site.yaml{f' and {SENT_WITH}' if settings.user else ''}"
        ) from None
