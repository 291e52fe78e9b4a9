"""Alerts: who is told, once, and what is said where nobody answers."""

import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from perf_assets.core.site import EXAMPLE, AlertSettings, Site, load_site
from perf_assets.storage.lake import Lake
from perf_assets.workflows.operate.alerts import Alert, AlertLog, full_disks
from tests.receivers import mail_server, web_hook

HOUR = 3600.0
FAILED = Alert("run:refresh:dane", "the run refresh of dane failed", "no time left", "http://127.0.0.1:3000/runs/1")
MAIL = "mail: {{to: [ops@example.org, hpc@example.org], sender: perf@example.org, server: 127.0.0.1, port: {port}}}"


def site(lake: Lake, alerts: str) -> AlertSettings:
    lake.root.mkdir(exist_ok=True)
    (lake.root / "site.yaml").write_text(f"alerts:\n  {alerts}\n")
    return load_site(lake.root).alerts


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def refused(*arguments: str) -> str:
    done = CliRunner().invoke(cli, [*arguments])
    assert isinstance(done.exception, BadInputError), (done.output, done.exception)
    assert "\n" not in str(done.exception)
    return str(done.exception)


def test_a_thing_is_told_once_by_every_way_and_again_while_it_stays_wrong(lake: Lake) -> None:
    with web_hook() as hook, mail_server() as mails:
        settings = site(lake, f"webhook: http://127.0.0.1:{hook.port}/x\n  {MAIL.format(port=mails.port)}")
        log = AlertLog()
        for now in (0.0, 60.0, 23 * HOUR):
            log.note([FAILED], settings, now)
            assert log.deliver(settings) == []
            log = AlertLog.of(log.document())
        assert [document["text"] for document in hook.documents] == [FAILED.line]
        assert hook.documents[0]["alerts"][0]["key"] == FAILED.key
        (mail,) = mails.mails
        assert mail["Subject"] == "perf-assets: the run refresh of dane failed"
        assert mail["To"] == "ops@example.org, hpc@example.org"
        assert FAILED.line in mail.get_payload()
        log.note([FAILED], settings, 24.5 * HOUR)
        log.deliver(settings)
        assert len(hook.documents) == 2
        log.settle([FAILED.key])
        log.note([FAILED], settings, 24.6 * HOUR)
        log.deliver(settings)
        assert (len(hook.documents), len(mails.mails)) == (3, 3), "it was right in between"


def test_what_an_address_did_not_take_is_told_when_it_answers(lake: Lake) -> None:
    with web_hook() as hook, mail_server() as mails:
        settings = site(lake, f"webhook: http://127.0.0.1:{hook.port}/x\n  {MAIL.format(port=mails.port)}")
        hook.status = 503
        log = AlertLog()
        log.note([FAILED], settings, 0.0)
        (problem,) = log.deliver(settings)
        assert f"the web hook at 127.0.0.1:{hook.port} does not take alerts" in problem
        hook.status = 200
        other = Alert("disk:/lake", "1.0 GB are free")
        log = AlertLog.of(log.document())
        log.note([FAILED, other], settings, 60.0)
        assert log.deliver(settings) == []
        assert [[alert["key"] for alert in document["alerts"]] for document in hook.documents] == [
            [FAILED.key, other.key]
        ]
        assert [mail["Subject"] for mail in mails.mails] == [f"perf-assets: {a.title}" for a in (FAILED, other)]


def test_the_command_tries_the_addresses(lake: Lake) -> None:
    lake.root.mkdir()
    assert "names nobody to tell" in refused("alerts", "--test")
    with web_hook() as hook:
        site(lake, f"webhook: http://127.0.0.1:{hook.port}/secret-of-the-hook")
        done = CliRunner().invoke(cli, ["alerts", "--test"])
        assert done.exit_code == 0, done.output
        assert "secret-of-the-hook" not in done.output
        assert "a test of the alerts" in hook.documents[0]["text"]
    line = refused("alerts", "--test")
    assert "does not take alerts" in line
    assert "secret-of-the-hook" not in line
    site(lake, MAIL.format(port=closed_port()))
    assert "the mail server 127.0.0.1:" in refused("alerts", "--test")


@pytest.mark.parametrize(
    ("alerts", "told"),
    [
        ("webhok: http://x.org/", "alerts.webhok: there is no such field"),
        ("webhook: chat.example.org", "alerts.webhook: no address"),
        ("mail: {to: [], sender: a@b, server: s}", "alerts.mail.to"),
        ("mail: {to: ['a@b, c@d'], sender: a@b, server: s}", "is no mail address"),
        ('mail: {to: ["a@b\\nBcc: c@d"], sender: a@b, server: s}', "is no mail address"),
        ("repeat_hours: 0", "alerts.repeat_hours"),
        ("{", "is not YAML"),
    ],
)
def test_a_wrong_site_file_is_one_line(lake: Lake, alerts: str, told: str) -> None:
    with pytest.raises(BadInputError, match=r"site\.yaml") as error:
        site(lake, alerts)
    assert told in str(error.value)
    assert "site.yaml" in refused("alerts")


def test_the_example_is_a_site_file(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(EXAMPLE)
    assert load_site(tmp_path) == Site()
    (tmp_path / "site.yaml").write_text(EXAMPLE.replace("\n# ", "\n").replace("\n#   ", "\n  "))
    mail = load_site(tmp_path).alerts.mail
    assert mail is not None
    assert mail.to == ("perf-team@example.org",)


def test_disks_that_fill_up(tmp_path: Path) -> None:
    wrong, right = full_disks([tmp_path], AlertSettings(disk_free_gb=1e9))
    assert [alert.key for alert in wrong] == [f"disk:{tmp_path}"]
    assert full_disks([tmp_path], AlertSettings(disk_free_gb=0)) == ([], [f"disk:{tmp_path}"])
    assert right == []
