"""The reference page of the HTTP service, from the OpenAPI document that the service itself hands out."""

from __future__ import annotations

from importlib import util
from typing import Any

from docs.generators.markdown import table


def page() -> str | None:
    """Every door with its form, its answer and its refusals; None where the extra `serve` is not installed."""
    if util.find_spec("fastapi") is None:
        return None
    from suffice.service.app import ERROR_DESCRIPTIONS, build_openapi, create_app
    from suffice.service.settings import Settings

    told = build_openapi(create_app(Settings()).app)
    schemas = told["components"]["schemas"]
    lines = [
        "# HTTP\n",
        "What `suffice serve` answers; as OpenAPI: `GET /openapi.json`. Every JSON answer stands in one envelope: `ok`, "
        "`data`, `error` (`code`, `message`, `hint`), `request_id`. [How to serve](../howto/serve.md).\n",
    ]
    for path, doors in told["paths"].items():
        for method, door in doors.items():
            lines += _door(f"{method.upper()} {path}", door, schemas)
    lines += [
        "## Refusals\n",
        table(
            ("status", "why"),
            [(str(code), why) for code, why in sorted(ERROR_DESCRIPTIONS.items())],
        ),
    ]
    named = [name for name in schemas if not name.startswith("Envelope") and name != "Failure"]
    lines.append("## Parts\n")
    for name in sorted(named):
        lines += [f"### {name}\n", *_described(schemas[name]), _fields(schemas[name])]
    return "\n".join(lines)


def _door(title: str, door: dict[str, Any], schemas: dict[str, Any]) -> list[str]:
    lines = [f"## `{title}`\n", door.get("description", "") + "\n"]
    for kind, body in door.get("requestBody", {}).get("content", {}).items():
        lines.append(f"Takes {_shape(body.get('schema', {}))} as `{kind}`.\n")
    if asked := door.get("parameters"):
        rows = [
            (f"`{one['name']}`", _bounds(one["schema"]), one.get("description", ""))
            for one in asked
        ]
        lines.append(table(("parameter", "kind", "meaning"), rows))
    for kind, body in door["responses"]["200"].get("content", {}).items():
        lines.append(f"Answers {_inside(body.get('schema', {}), schemas)} as `{kind}`.\n")
    refused = sorted(code for code in door["responses"] if code != "200")
    return [*lines, f"May refuse with {', '.join(refused)}.\n"]


def _inside(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """What stands in the envelope's `data`."""
    whole = schemas.get(schema.get("$ref", "").rpartition("/")[2], {})
    data = whole.get("properties", {}).get("data")
    return _shape(data) if data else _shape(schema) if schema else "text"


def _described(schema: dict[str, Any]) -> list[str]:
    return [schema["description"] + "\n"] if "description" in schema else []


def _fields(schema: dict[str, Any]) -> str:
    needed = schema.get("required", ())
    rows = []
    for name, one in schema.get("properties", {}).items():
        given = "" if name in needed or "default" not in one else f"`{one['default']!r}`"
        rows.append(
            (
                f"`{name}`" + (" (needed)" if name in needed else ""),
                _bounds(one),
                given,
                one.get("description", ""),
            )
        )
    return table(("field", "kind", "default", "meaning"), rows)


def _shape(schema: dict[str, Any]) -> str:
    """A schema in a word: the part's name, or what JSON calls it."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(_shape, schema["anyOf"])))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_shape(schema.get('items', {}))}"
    return str(schema.get("type", "any JSON"))


def _bounds(schema: dict[str, Any]) -> str:
    """The shape, and between what it must lie."""
    said = {
        "minimum": "at least {}", "maximum": "at most {}", "maxLength": "at most {:,} letters", "maxItems": "at most {:,}",
        "exclusiveMinimum": "above {}",
    }  # fmt: skip
    parts = (schema, *schema.get("anyOf", ()))
    told = [text.format(int(part[name]) if float(part[name]).is_integer() else part[name])
            for part in parts for name, text in said.items() if name in part]  # fmt: skip
    return ", ".join([_shape(schema), *told])
