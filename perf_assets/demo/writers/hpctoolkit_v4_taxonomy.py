"""`metrics/default.yaml` of HPCToolkit's v4 databases, without which its viewer shows no metric."""

import re
from functools import lru_cache


@lru_cache(maxsize=64)
def taxonomy(metrics: tuple[str, ...]) -> str:
    """The text of `metrics/default.yaml`: how a viewer presents the metrics."""
    inputs, roots = ["version: 0", "inputs:"], ["roots:"]
    for metric in metrics:
        anchor = re.sub(r"[^A-Za-z0-9_]", lambda found: f"x{ord(found.group()):02x}_", metric) + "-sum-x5b_0x0x5d_"
        quoted = '"' + metric.replace("\\", "\\\\").replace('"', '\\"') + '"'
        for scope in ("execution", "lex_aware", "function"):
            inputs += [
                f"  - &{anchor}-{scope}",
                f"    metric: {quoted}",
                f"    scope: {scope}",
                "    formula: $$",
                "    combine: sum",
            ]
        roots += [
            f"  - name: {quoted}",
            f"    description: {quoted}",
            "    variants:",
            "      Sum:",
            "        render: [number, percent]",
            "        formula:",
            "          inclusive:",
            f"            standard: *{anchor}-execution",
            "          exclusive:",
            f"            custom: *{anchor}-lex_aware",
            f"            standard: *{anchor}-function",
        ]
    return "\n".join(inputs + roots) + "\n"
