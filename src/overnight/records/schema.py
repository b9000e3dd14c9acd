"""JSON Schemas, generated from the records themselves, so that the two cannot drift apart."""

import ast
import inspect
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from itertools import pairwise
from textwrap import dedent
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from overnight.records.codec import Versioned, hints_of
from overnight.records.limits import Above, AtLeast, AtMost, Items, Length, Shape

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
Schema = dict[str, Any]


def json_schema(kind: type[Versioned]) -> Schema:
    """Describe the file of one stored record as a JSON Schema (draft 2020-12)."""
    parts: dict[str, Schema] = {}
    body = _record(kind, parts)
    body["properties"] = {"schema": {"const": kind.SCHEMA}, **body["properties"]}
    body["required"] = ["schema", *body["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": kind.SCHEMA,
        **body,
        **({"$defs": dict(sorted(parts.items()))} if parts else {}),
    }


def field_sentences(kind: type) -> dict[str, str]:
    """The sentence written under each field of a record, those of the records it is made of first."""
    above = {
        name: says for base in kind.__bases__ if is_dataclass(base) for name, says in field_sentences(base).items()
    }
    tree = ast.parse(dedent(inspect.getsource(kind)))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    found = above
    for node, after in pairwise(body):
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            found[node.target.id] = " ".join(after.value.value.split())
    return found


def _record(kind: Any, parts: dict[str, Schema]) -> Schema:  # noqa: ANN401 - any dataclass
    hints, sentences = hints_of(kind), field_sentences(kind)
    properties, required = {}, []
    for field in fields(kind):
        described = _of(hints[field.name], parts)
        if field.name in sentences:
            described = {"description": sentences[field.name], **described}
        properties[field.name] = described
        if field.default is MISSING and field.default_factory is MISSING:
            required.append(field.name)
    summary = (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")
    return {
        "title": kind.__name__,
        "description": summary,
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": required,
    }


def _of(kind: Any, parts: dict[str, Schema]) -> Schema:  # noqa: ANN401 - any type hint
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return {**_of(args[0], parts), **_limits(args[1:])}
    if origin in (Union, UnionType):
        return {"anyOf": [_of(arg, parts) for arg in args]}
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (tuple, list):
        return {"type": "array", "items": _of(args[0], parts)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _of(args[1], parts)}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {"enum": [str(member) for member in kind]}
    if is_dataclass(kind):
        name = kind.__name__  # type: ignore[union-attr]
        if name not in parts:
            parts[name] = {}
            parts[name] = _record(kind, parts)
        return {"$ref": f"#/$defs/{name}"}
    return {} if kind in (object, Any) else {"type": _PLAIN[kind]}


def _limits(limits: tuple[object, ...]) -> Schema:
    found: Schema = {}
    for limit in limits:
        match limit:
            case AtLeast(least):
                found["minimum"] = least
            case Above(bound):
                found["exclusiveMinimum"] = bound
            case AtMost(most):
                found["maximum"] = most
            case Items(least, most):
                found |= {"minItems": least, "maxItems": most}
            case Shape(pattern, _):
                found["pattern"] = rf"^(?:{pattern})$"
            case Length(most, least):
                found |= {"minLength": least, "maxLength": most}
    return found
