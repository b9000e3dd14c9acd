"""Any other command: it says nothing that is read, tells no cost, and leaves its answer in `proposal.json`."""

from collections.abc import Iterable

from overnight.adapters.proposers.events import Told, object_in


def read(lines: Iterable[bytes], now: float) -> Told:  # noqa: ARG001 - as the other readers
    """The last thing that was printed is its message, in which an answer may stand as well."""
    said = b"\n".join(list(lines)[-200:]).decode(errors="replace").strip()
    return Told(said=said, answer=object_in(said), ended=True)
