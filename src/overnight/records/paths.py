"""Which names may stand in a tree: plain ones, that mean the same on every machine."""

import re
import unicodedata

MAX_PATH_BYTES = 1024
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
_GIT_NAMES = {".git", *(f"git~{number}" for number in range(10))}


def why_unsafe(path: str) -> str | None:
    """Say what is wrong with a path's name, or return None.

    Refused are names that leave the folder, hide as `.git`, look like another name,
    or cannot exist on some file system that the tree may be copied to.
    """
    if not path or path.startswith("/"):
        return "does not lie inside the tree"
    if len(path.encode(errors="surrogatepass")) > MAX_PATH_BYTES:
        return f"is longer than {MAX_PATH_BYTES} bytes"
    if any(unicodedata.category(char).startswith("C") for char in path):
        return "holds a character that cannot be seen"
    if unicodedata.normalize("NFC", path) != path:
        return "is not in Unicode's composed form, so it may look like another"
    if any(char in path for char in "\\:"):
        return "holds a backslash or a colon"
    return next((wrong for part in path.split("/") if (wrong := _why_part(part)) is not None), None)


def _why_part(part: str) -> str | None:
    if part in ("", ".", ".."):
        return "leaves its folder"
    if part != part.strip() or part.endswith("."):
        return "begins or ends with a space, or ends with a dot"
    if part.lower() in _GIT_NAMES:
        return "is one that git keeps for itself"
    if _RESERVED.fullmatch(part):
        return "is one that some systems keep for themselves"
    return None
