"""From a run order to a trainer's typed parameters, and to the device it computes on."""

import sys
import warnings
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from typing import Any, ClassVar, Protocol, TypeVar

import jax

from overnight.guest.train import Order


class Dataclass(Protocol):
    """Any dataclass whose fields all have defaults."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


Kind = TypeVar("Kind", bound=Dataclass)


@dataclass(frozen=True, kw_only=True)
class Neutral:
    """What every built-in trainer declares and none reads."""

    null_knob: float = 0.0
    """Changes nothing: for nights that show how often nothing is taken for an improvement. Search leaves it alone."""


def settings(kind: type[Kind], given: Mapping[str, Any], *, trainer: str) -> Kind:
    """The defaults with what the order changes, or the process ends with one sentence."""
    kinds: dict[str, type] = {field.name: type(field.default) for field in fields(kind)}
    for name, value in given.items():
        if name not in kinds:
            sys.exit(f"params: `{name}` is not a parameter of {trainer}")
        if type(value) is not kinds[name] and (kinds[name], type(value)) != (float, int):
            sys.exit(f"params: `{name}` is {value!r}, but {kinds[name].__name__} is needed")
    return kind(**{name: kinds[name](value) for name, value in given.items()})


def prepare_device(order: Order) -> None:
    """Use the order's compiled programs, and end the process where the device it asks for is missing.

    `cpu` is always there, and `auto` is whatever JAX finds. Any other name must be one of JAX's
    platforms, such as `gpu`, or one of its devices, such as `cuda:1`: what was to be fast is never slow in silence.
    """
    if order.compile_cache is not None:
        jax.config.update("jax_compilation_cache_dir", order.compile_cache)  # type: ignore[no-untyped-call]
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # type: ignore[no-untyped-call]
        warnings.filterwarnings("ignore", "Error .* persistent compilation cache")  # it may be read-only
    if order.device in ("cpu", "auto"):
        return
    platform, _, number = order.device.partition(":")
    try:
        found = jax.devices(platform)[int(number or 0)]
    except (RuntimeError, ValueError, IndexError):
        sys.exit(f"device: `{order.device}` is asked for, but JAX finds only {jax.default_backend()} here")
    jax.config.update("jax_default_device", found)  # type: ignore[no-untyped-call]
