"""What a person sets for all their studies, in a file of their own that no study and no repository holds."""

from dataclasses import dataclass
from typing import Annotated

from overnight.records.limits import Items, Name


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`overnight/config.yaml` in the user's configuration folder. A missing file is one that sets nothing."""

    require_signature: bool = False
    """Whether an approval counts only with a signature that holds."""
    allowed_signers: Name | None = None
    """Whose signatures count: a file in ssh-keygen's format; `allowed_signers` beside config.yaml by default."""
    revoked_keys: Name | None = None
    """Keys that count no more: one public key a line, or a list made by `ssh-keygen -k`."""
    notify: Annotated[tuple[Name, ...], Items(0, 50)] = ()
    """The command that is run when a night has ended, as a list of words; it gets a summary as JSON on its input."""
    signing_key: Name | None = None
    """The key that `overnight approve --sign` uses; the first of the usual ones in ~/.ssh by default."""
