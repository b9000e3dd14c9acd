"""A log of bounded size: the first part and the last part of whatever a trainer prints."""

from pathlib import Path

HEAD_BYTES = 256 * 1024
TAIL_BYTES = 1024 * 1024


class CappedLog:
    """Keeps the head in the file as it comes, and the tail in memory until the end."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._tail = bytearray()
        self.total = 0

    def write(self, data: bytes) -> None:
        """Take output of any length in constant memory."""
        room = max(HEAD_BYTES - self.total, 0)
        self.total += len(data)
        if room:
            self._file.write(data[:room])
            self._file.flush()
        if len(data) > room:
            self._tail += data[room:]
            del self._tail[: max(len(self._tail) - TAIL_BYTES, 0)]

    def last_line(self) -> str:
        """The last line that says anything, which for a crash in Python is the error itself."""
        self._file.flush()
        data = bytes(self._tail) or Path(self._file.name).read_bytes()
        lines = [line.strip() for line in data[-4000:].decode(errors="replace").splitlines()]
        return next((line for line in reversed(lines) if line), "it said nothing")[:500]

    def close(self) -> None:
        """Write the tail behind the head, with a note on what is missing between them."""
        missing = self.total - HEAD_BYTES - len(self._tail)
        if missing > 0:
            self._file.write(f"\n[… {missing:,} bytes left out …]\n".encode())
        self._file.write(self._tail)
        self._file.close()
