"""Write the last line of every chapter, which leads to the one before and after, from the contents in README.md.

`make docs` runs it. With --check nothing is written: it names the chapters whose line is wrong, and exits with 1.
"""

import os
import re
import sys
from pathlib import Path

CONTENTS = Path(__file__).resolve().with_name("README.md")
_LINKED = re.compile(r"^\s*(?:\d+\.|-) \[([^]]+)\]\(([^)#]+\.md)\)", re.MULTILINE)
_LINE = re.compile(r"\n+---\n\n[^\n]*\[Contents\]\([^\n]*\n*\Z")


def main() -> int:
    """Write or check all chapters."""
    found = [(title, (CONTENTS.parent / target).resolve()) for title, target in _LINKED.findall(CONTENTS.read_text())]
    wrong = []
    for number, (_, page) in enumerate(found):
        before, after = found[number - 1] if number else None, found[number + 1] if number + 1 < len(found) else None
        parts = [_link(page, "Contents", CONTENTS)]
        if before:
            parts.insert(0, _link(page, f"Before: {before[0]}", before[1]))
        if after:
            parts.append(_link(page, f"Next: {after[0]}", after[1]))
        text = page.read_text()
        wanted = f"{_LINE.sub('', text).rstrip()}\n\n---\n\n{' · '.join(parts)}\n"
        if wanted != text:
            wrong.append(page)
        if wanted != text and "--check" not in sys.argv:
            page.write_text(wanted)
    if "--check" not in sys.argv:
        return 0
    sys.stdout.writelines(f"{page}: the line at its end does not fit docs/README.md\n" for page in wrong)
    return int(bool(wrong))


def _link(page: Path, text: str, to: Path) -> str:
    return f"[{text}]({os.path.relpath(to, page.parent)})"


if __name__ == "__main__":
    sys.exit(main())
