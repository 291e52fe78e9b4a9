"""A small disk of its own for the lake, which can be filled without harm to anybody else."""

import os
import shutil
import subprocess
from pathlib import Path

_BYTES = 5 * 2**30
"""More than the doctor wants to see free. The file is sparse: it takes what is written, not this."""
_FILLER = ".filler"


class SmallDisk:
    """A file system in a file, mounted on a folder."""

    def __init__(self, image: Path, folder: Path) -> None:
        self._image = image
        self.folder = folder

    def mount(self) -> str | None:
        """Make and mount it; why not, where that is not possible here."""
        if os.geteuid() != 0:
            return "only root may mount a small disk"
        self.folder.mkdir(parents=True)
        with self._image.open("wb") as file:
            file.truncate(_BYTES)
        for command in (
            ["mkfs.ext4", "-q", "-m", "0", "-F", str(self._image)],
            ["mount", "-o", "loop", str(self._image), str(self.folder)],
        ):
            if shutil.which(command[0]) is None:
                return f"{command[0]} is not installed"
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                return " ".join((done.stderr or done.stdout).split())
        (self.folder / "lost+found").rmdir()
        return None

    def unmount(self) -> None:
        """Lazily where something still holds it."""
        if self.folder.is_mount() and subprocess.run(["umount", str(self.folder)], check=False).returncode:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=False)
        self._image.unlink(missing_ok=True)

    def fill(self) -> int:
        """Leave not one block; bytes that were taken."""
        filler = self.folder / _FILLER
        with filler.open("ab") as file:
            for part in (2**24, 2**16, 2**12):
                try:
                    while free := shutil.disk_usage(self.folder).free // part * part:
                        os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, free)
                except OSError:
                    continue
        return filler.stat().st_size

    def free(self) -> None:
        """Give back what was taken."""
        (self.folder / _FILLER).unlink(missing_ok=True)
