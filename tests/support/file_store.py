"""A key-value store in a folder, as a program of a user might bring one."""

import contextlib
import os
import threading
import time
from pathlib import Path


class FileStore:
    """Keeps each value in a file. All ranks see the folder."""

    def __init__(self, folder: Path | str, seconds: float = 60) -> None:
        self.folder = Path(folder)
        self.seconds = seconds

    def _file(self, key: str) -> Path:
        return self.folder / key.replace("/", "_")

    def set(self, key: str, value: bytes) -> None:
        """Store a value."""
        file = self._file(key)
        part = file.with_name(file.name + ".part")
        part.write_bytes(value)
        part.rename(file)

    def get(self, key: str) -> bytes:
        """Wait for a value."""
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            try:
                return self._file(key).read_bytes()
            except FileNotFoundError:
                time.sleep(0.002)
        raise TimeoutError(f"no rank has set {key}")

    def check(self, keys: list[str]) -> bool:
        """Whether all keys have values."""
        return all(self._file(key).exists() for key in keys)

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        """Store a value if the key has none, and return the value that it has then."""
        assert not expected
        file = self._file(key)
        part = file.with_name(f"{file.name}.{os.getpid()}.{threading.get_ident()}")
        part.write_text(desired)
        with contextlib.suppress(FileExistsError):
            os.link(part, file)  # atomic
        part.unlink()
        return file.read_bytes()

    def delete_key(self, key: str) -> None:
        """Delete a value."""
        self._file(key).unlink()
