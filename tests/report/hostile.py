"""Every text of a night replaced by another, so that no field is forgotten."""

from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

HOSTILE = (
    "<script>alert(1)</script><img src=https://evil.example/x onerror=alert(2)> \" ' --> ]]> </style></script></svg> "
    "\x1b[2J\x1b]0;owned\x07 \u202egnp.exe\u202c \u2066x\u2069 \u200b\x00 ![a](https://evil.example/b) "
    "[c](javascript:d) | ``` \n# e\n- f\t$g$ url(https://evil.example/h) " + "long " * 400
)
KEPT = {"plant", "arm"}
"""Fields that hold one of a few words, which the types already guard."""


def everywhere(thing: Any, text: str) -> Any:
    """The same thing with every text in it replaced."""
    if is_dataclass(thing) and not isinstance(thing, type):
        names = [one.name for one in fields(thing) if one.name not in KEPT]
        return replace(thing, **{name: everywhere(getattr(thing, name), text) for name in names})
    if isinstance(thing, tuple):
        return tuple(everywhere(one, text) for one in thing)
    return text if isinstance(thing, str) and not isinstance(thing, Enum) else thing
