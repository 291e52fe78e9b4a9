"""`make chaos`: land data for some minutes while processes are killed, the disk fills up and landed files are spoiled.

Everything happens in a temporary folder, which is kept where something was wrong. Exit code 1 then, and 2 where it
cannot be done here.
"""

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from chaos.log import Log
from chaos.run import Outcome, chaos
from tests.postgres import MISSING, installed


def main() -> int:
    """Run, and tell."""
    parser = argparse.ArgumentParser(prog="make chaos", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=15.0, help="how long faults are done")
    parser.add_argument("--seed", type=int, default=None, help="of the plan of faults; random if absent")
    parser.add_argument("--patience", type=float, default=1800.0, help="seconds to wait until all is quiet again")
    given = parser.parse_args()
    if not 0 < given.minutes <= 24 * 60 or given.patience <= 0:
        parser.error("--minutes must be above 0 and up to a day, --patience above 0")
    if installed() is None:
        sys.stderr.write(f"make chaos: {MISSING}\n")
        return 2
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    # So that a terminated run, too, stops all that it started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    root = Path(tempfile.mkdtemp(prefix="perf-assets-chaos-"))
    log = Log(root / "events.jsonl")
    log.say("begin", f"seed {seed}, {given.minutes:g} minutes of faults; folder {root}", seed=seed)
    is_good = False
    try:
        outcome = chaos(root, seed, given.minutes, given.patience, log)
        is_good = outcome.is_good
        _tell(outcome)
    finally:
        if is_good:
            shutil.rmtree(root, ignore_errors=True)
        else:
            sys.stdout.write(f"kept for a look: {root} (events.jsonl, site/up.log, site/dagster_home)\n")
    sys.stdout.write(json.dumps(_figures(outcome)) + "\n")
    return 0 if is_good else 1


def _tell(outcome: Outcome) -> None:
    lines = ["", f"{'fault':<12}{'done':>6}{'nothing there':>15}"]
    for kind in sorted({*outcome.faults, *outcome.missed, *outcome.left_out}):
        left_out = f"  left out: {outcome.left_out[kind]}" if kind in outcome.left_out else ""
        lines.append(f"{kind:<12}{outcome.faults[kind]:6}{outcome.missed[kind]:15}{left_out}")
    lines += ["", f"{'check':<40}result"]
    for name, problems in outcome.checks.items():
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        lines.append(f"{name:<40}{f'FAILED: {problems[0]}{more}' if problems else 'ok'}")
    sys.stdout.write("\n".join([*lines, "", ""]))


def _figures(outcome: Outcome) -> dict[str, object]:
    """Of the last line."""
    return {
        "ok": outcome.is_good,
        "seed": outcome.seed,
        "minutes": outcome.minutes,
        "faults": dict(sorted(outcome.faults.items())),
        "left_out": outcome.left_out,
        "landed": outcome.landed,
        "good_bundles": outcome.good,
        "refused_bundles": outcome.refused,
        "landings_refused_by_full_disk": outcome.full_disk_landings,
        "up_started_again": outcome.restarts,
        "runs": outcome.runs,
        "settle_seconds": round(outcome.settle_seconds),
        "failed_checks": [name for name, problems in outcome.checks.items() if problems],
    }


if __name__ == "__main__":
    sys.exit(main())
