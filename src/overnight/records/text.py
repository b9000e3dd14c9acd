"""Text that may be shown: nothing in it can drive a terminal, hide, or pretend to be another line."""

MAX_SENTENCE = 2000


def printable(text: str) -> str:
    """The same text on one line, with every character that cannot be seen made visible as a mark."""
    return "".join(char if char.isprintable() else "�" for char in " ".join(text.split("\n")))


def sentence(text: str) -> str:
    """Text as a record's sentence: printable, not empty, not endless."""
    found = printable(text)[:MAX_SENTENCE]
    return found or "Nothing was said."
