"""The reference pages, generated from the code: commands, metrics, features, Python names, formats,
settings, HTTP.
"""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import MISSING, fields
from importlib import import_module
from typing import Any

import typer

from docs.generators.markdown import table
from docs.generators.source import home_of, public_modules, public_names, texts, trees
from suffice import errors
from suffice.answering.budget import Budget, Prices
from suffice.answering.expand import ExpansionBudget
from suffice.cli.app import EXAMPLES, app
from suffice.datasets import FORMATS, jsonl
from suffice.evaluation.metrics import ANSWER_METRICS, PROBABILITY, RANKING
from suffice.gate.features import (
    COUNTING,
    FEATURES,
    READING,
    READING_HIT,
)
from suffice.gate.policy import Costs
from suffice.gate.stuffing_filter import SUPPORT_COLUMNS
from suffice.registry import RETRIEVERS
from suffice.retrieval import builtin  # noqa: F401 - importing it registers our retrievers
from suffice.service.app import ERROR_DESCRIPTIONS, build_openapi, create_app
from suffice.service.settings import METRICS_DIR_VARIABLE, SETTINGS_VARIABLE, Limits, Settings
from suffice.storage import MANIFEST
from suffice_research.paper_features import FRAMES_WITH_HOPS, MAGAF


def commands() -> str:
    """Every command with its options, as `--help` shows them."""
    lines = [
        "# Commands\n",
        "Exit codes: 0 success, 1 a failure of suffice, 2 a mistake of the caller, 3 a `--fail-if` condition holds or `adapt` found no better gate. Errors are two lines, "
        "`error:` and `hint:`.\n",
    ]

    def describe(command: Any, name: str) -> None:
        lines.append(f"## `{name}`\n\n{(command.help or '').strip()}\n")
        rows = []
        for parameter in command.params:
            if parameter.param_type_name == "option":
                default = (
                    ""
                    if parameter.default in (None, False) or callable(parameter.default)
                    else f"`{parameter.default}`"
                )
                rows.append((f"`{', '.join(parameter.opts)}`", parameter.help or "", default))
            else:
                rows.append((f"`{parameter.name}`", getattr(parameter, "help", "") or "", ""))
        if rows:
            lines.append(table(("option", "meaning", "default"), rows))
        lines.append(f"    {EXAMPLES[name]}\n")
        for child, one in sorted(getattr(command, "commands", {}).items()):
            describe(one, f"{name} {child}")

    describe(typer.main.get_command(app), "suffice")
    return "\n".join(lines)


def metrics() -> str:
    """Every metric by name and meaning."""
    lines = [
        "# Metrics\n",
        "An undefined value (one class only, no questions) is `null` in JSON and `--` in tables.\n",
    ]
    for title, family in (("Rankings", RANKING), ("Probabilities", PROBABILITY)):
        lines += [
            f"## {title}\n",
            table(("metric", "meaning"), [(f"`{one.name}`", one.meaning) for one in family]),
        ]
    meanings = [
        (f"`{name}`", (function.__doc__ or "").splitlines()[0])
        for name, function in ANSWER_METRICS.items()
    ]
    lines += ["## Answers\n", table(("metric", "meaning"), meanings)]
    return "\n".join(lines)


LEVELS = {
    "hit": "For each hit: is it evidence?",
    "absent": "For each name that no hit is about: is it missing evidence?",
    "question": "For the question alone: what does it ask for, and how many documents does it need?",
    "set": "For the whole set of hits.",
    "gate": "The inputs of the gate: the outputs of the models above, and the features of the whole set.",
}

EXTRA_FEATURES = (
    (
        "Only in the preset `standard`",
        "From the reader, a small transformer that reads the hits together (see `suffice.gate.reader`), and from the fast gate.",
        (*READING_HIT, *READING, *COUNTING),
    ),
)


def features() -> str:
    """Every feature of the gate by level and family, then the two papers' selections."""
    lines = [
        "# Features\n",
        "Every feature is computed from the question and its hits alone; none depends on the scale of scores. Reasons are grouped by "
        "family; the level says which model uses the feature.\n",
    ]
    known = dict.fromkeys([*LEVELS, *(one.level for one in FEATURES)])
    for level in known:
        rows = [
            (f"`{one.name}`", one.family, one.meaning) for one in FEATURES if one.level == level
        ]
        if rows:
            lines += [
                f"## Level {level}\n",
                f"{LEVELS.get(level, '')}\n",
                table(("feature", "family", "meaning"), rows),
            ]
    for title, says, more in EXTRA_FEATURES:
        rows = [(f"`{one.name}`", one.level, one.meaning) for one in more]
        lines += [f"## {title}\n", f"{says}\n", table(("feature", "level", "meaning"), rows)]
    lines += [
        "## Only in a hardened gate\n",
        "The stuffing filter also uses these features: see `suffice.gate.stuffing_filter`.\n",
    ]
    lines.append(
        table(
            ("feature", "level", "meaning"),
            [(f"`{name}`", "hit", says) for name, says in SUPPORT_COLUMNS.items()],
        )
    )
    for title, chosen in (("MAGAF", MAGAF), ("FRAMES", FRAMES_WITH_HOPS)):
        rows = [(f"`{one.name}`", one.family, one.meaning) for one in chosen]
        lines += [f"## {title}'s {len(chosen)}\n", table(("feature", "family", "meaning"), rows)]
    return "\n".join(lines)


def retrievers() -> str:
    """Every named retriever with the first line of its docstring."""
    rows = [
        (f"`{name}`", (RETRIEVERS.get(name).__doc__ or "").splitlines()[0])
        for name in sorted(RETRIEVERS.names())  # whatever else this process has loaded
    ]
    return "# Retrievers\n\n" + table(("name", "what it does"), rows)


def error_tree() -> str:
    """The tree of errors, as the module draws it, with codes."""
    kinds = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]
    rows = [
        (
            f"`{one.__name__}`",
            f"`{one.code}`",
            str(one.exit_code),
            (one.__doc__ or "").splitlines()[0],
        )
        for one in kinds
    ]
    drawn = "\n".join(line for line in (errors.__doc__ or "").splitlines() if "Error" in line)
    return f"# Errors\n\n{drawn}\n\n" + table(("error", "code", "exit code", "meaning"), rows)


# ------------------------------------------------------------------------------------- Python names

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def python_names() -> str:
    """Every public name: those of `suffice` in full, those of the other public modules in a line
    each.
    """
    lines = [
        "# Python\n",
        "Every public name. [Stability](stability.md) says what public means; other modules may change.\n",
        "## `suffice`\n",
    ]
    for name in public_names("suffice"):
        if not name.startswith("__"):
            lines += _full_entry("suffice", name)
    for module in public_modules():
        if module != "suffice":
            lines += [f"## `{module}`\n", _summary(trees()[module]) + "\n"]
            lines += [_name_line(module, name) for name in public_names(module)] + [""]
    return "\n".join(lines)


def _definitions(body: list[ast.stmt]) -> dict[str, Definition]:
    return {node.name: node for node in body if isinstance(node, Definition)}


def _full_entry(module: str, name: str) -> list[str]:
    """A heading, the docstring, and for a class its public methods."""
    found = _definitions(trees()[home_of(module, name)].body)[name]
    lines = [
        f"### `{name}`\n",
        f"`{_signature(found)}`\n",
        *(f"{told}\n" for told in [ast.get_docstring(found)] if told),
    ]
    if isinstance(found, ast.ClassDef):
        methods = [
            one for called, one in _definitions(found.body).items() if not called.startswith("_")
        ]
        lines += [_signature_line(one, dot=".") for one in methods]
        lines += [""] if methods else []
    return lines


def _name_line(module: str, name: str) -> str:
    found = _definitions(trees()[home_of(module, name)].body).get(name)
    return f"- `{name}`" if found is None else _signature_line(found)


def _signature_line(found: Definition, *, dot: str = "") -> str:
    told = _summary(found)
    return f"- `{dot}{_signature(found)}`" + (f": {told}" if told else "")


def _signature(found: Definition) -> str:
    if not isinstance(found, ast.ClassDef):
        returns = f" -> {ast.unparse(found.returns)}" if found.returns else ""
        as_property = any(ast.unparse(one) == "property" for one in found.decorator_list)
        return found.name + ("" if as_property else f"({_arguments(found)})") + returns
    made = _definitions(found.body).get("__init__")
    if made and not isinstance(made, ast.ClassDef):
        return f"{found.name}({_arguments(made)})"
    if any("dataclass" in ast.unparse(one) for one in found.decorator_list):
        fields = [
            one
            for one in found.body
            if isinstance(one, ast.AnnAssign) and not ast.unparse(one.target).startswith("_")
        ]
        return f"{found.name}({', '.join(ast.unparse(one) for one in fields)})"
    values = [ast.unparse(one.targets[0]) for one in found.body if isinstance(one, ast.Assign)]
    return (
        f"{found.name}: {', '.join(values)}"
        if "Enum" in "".join(map(ast.unparse, found.bases))
        else found.name
    )


def _arguments(found: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    told = ast.unparse(found.args)
    for first in ("self", "cls"):
        told = told.removeprefix(f"{first}, ") if told != first else ""
    return told


def _summary(node: ast.Module | Definition) -> str:
    """The first paragraph of the docstring, in one line."""
    return " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())


# ------------------------------------------------------------------------------------- file formats

# Constant -> what has this format, and what writes it. A test fails when a version is missing here.
WRITTEN_FORMATS = {
    "suffice.gate.gate.GATE_VERSION": (
        "a gate: a folder of ONNX, JSON and `.npy`",
        "`suffice fit`, `Gate.save`",
    ),
    "suffice.gate.model.MODEL_FORMAT": ("a gate's `model.json`", "`suffice fit`, `Gate.save`"),
    "suffice.gate.stuffing_filter.FILTER_VERSION": (
        "the stuffing filter of a hardened gate: a folder of ONNX and JSON",
        "`python -m suffice_research.training.stuffing_filter`",
    ),
    "suffice.gate.reader.READER_VERSION": (
        "the reader of a standard gate: a folder of ONNX and a tokenizer",
        "`python -m suffice_research.training.reader_export`",
    ),
    "suffice.gate.reader.ANSWER_VERSION": (
        "how likely the reader's answers are right: JSON in its folder",
        "`python -m suffice_research.training.answers`",
    ),
    "suffice.gate.question.WORD_TABLE_VERSION": (
        "the word table of a gate: a folder",
        "`python -m suffice_research.training.word_table`",
    ),
    "suffice.engines.library_location.VERSION": (
        "a library: a folder",
        "`suffice build --out`, `Library.build`",
    ),
    "suffice.engines.embedded.sqlite_documents.FORMAT": (
        "a library's documents: SQLite",
        "`suffice build --out`, `Library.add`",
    ),
    "suffice.engines.qdrant.schema.FORMAT": (
        "a library's header in a Qdrant collection",
        "`suffice build --store`",
    ),
    "suffice.evaluation.verdict_log.VERSION": (
        "a verdict log: one JSON object per line",
        "a guard with `log=FILE`, `suffice serve --shadow`",
    ),
    "suffice.evaluation.gate_runs.VERSION": (
        "a run of a gate: JSON",
        "`suffice evaluate gate --out`",
    ),
    "suffice.evaluation.retrieval_runs.VERSION": (
        "a run of retrievers: JSON",
        "`suffice evaluate retrieval --out`",
    ),
    "suffice_grade.stage_cache._VERSION": (
        "a stage of a benchmark or of the loop: a folder",
        "`suffice grade --out`, `suffice improve --out`",
    ),
    "suffice.gate.gate.STOP_VERSION": (
        "the calibration of a gate where a search stops: a folder of JSON",
        "`python -m suffice_research.training.stop_calibration`; it ships",
    ),
    "suffice.answering.traces.TRACE_VERSION": (
        "a trace: one JSON object per line",
        "`suffice ask --trace`, `/v1/ask`",
    ),
    "suffice.retrieval.links._VERSION": (
        "a library's mention links: a folder of `.npy`",
        "`suffice build`",
    ),
    "suffice.retrieval.name_links._VERSION": (
        "a library's name links: a folder of `.npy`",
        "the retriever `bridge`, when first used",
    ),
    "suffice.retrieval.name_rows._VERSION": (
        "what a library's documents contribute to its name links: a folder of `.npy`",
        "the retriever `bridge`, when first used",
    ),
    "suffice.retrieval.bridge.VERSION": (
        "the bridge's ranker: a folder with ONNX",
        "`suffice fit-ranker`",
    ),
    "suffice.service.keys.VERSION": (
        "the keys of a service, as hashes: JSON",
        "`suffice serve key new`",
    ),
}
# Of ONNX; of what a reader says: no file holds it but as part of the reader's name; of a run that the
# research package writes.
NOT_FORMATS = {"IR_VERSION", "READING_VERSION", "ANSWERS_VERSION"}


def format_versions() -> dict[str, int]:
    """`module.CONSTANT` -> version, for every format of the package: constants called VERSION or
    FORMAT.
    """
    found: dict[str, int] = {}
    for module, tree in trees().items():
        assigned = (node.targets[0] for node in tree.body if isinstance(node, ast.Assign))
        names = {
            node.id
            for target in assigned
            for node in ast.walk(target)
            if isinstance(node, ast.Name)
        }
        for name in sorted(names - NOT_FORMATS):
            if re.fullmatch(r"(?:[A-Z_]*_)?(?:VERSION|FORMAT)", name):
                value = getattr(import_module(module), name)
                found |= {f"{module}.{name}": value} if isinstance(value, int) else {}
    return found


def formats() -> str:
    read = [
        (f"`{name}`", _module_summary(inspect.getmodule(FORMATS.get(name))))
        for name in FORMATS.names()
    ]
    versions = format_versions()
    rows = [
        (what, str(versions[constant]), by, f"`{constant}`")
        for constant, (what, by) in WRITTEN_FORMATS.items()
    ]
    return "\n".join(
        [
            "# File formats\n",
            "## Written\n",
            f"A folder is an artefact: its `{MANIFEST}` holds kind, version, settings, seed, the hashes of inputs and files, "
            "and the package versions. suffice writes to a temporary name and renames, so a crash leaves the old state or the "
            "new one. If the version differs, the error names the command that rebuilds it. Nothing is pickled.\n",
            table(("what", "version", "written by", "constant"), rows),
            "## Read\n",
            "With `--dataset NAME --path FILE_OR_FOLDER`, or `suffice.datasets.load(NAME, PATH)`.\n",
            table(("name", "what it reads"), read),
            "## Our JSON Lines\n",
            f"{inspect.getdoc(jsonl)}\n",
            "## Hits and labelled questions\n",
            "`suffice check --hits` and `--batch`, `/v1/check` and `Gate.check` take hits of any usual shape: "
            "[check](../howto/check.md). `suffice adapt` takes labels of many shapes: [adapt](../howto/adapt.md#adapt-the-gate-to-your-corpus). `suffice fit --examples` takes JSON Lines with `question`, `hits` and `gold`: "
            "[fit a gate](../howto/fit.md). `suffice serve --label` takes JSON Lines of `question` and `hits`, and appends "
            "labels to another file: [label questions](../howto/adapt.md#label-questions).\n",
        ]
    )


def _module_summary(module: object) -> str:
    return " ".join((inspect.getdoc(module) or "").split("\n\n")[0].split())


# ----------------------------------------------------------------------------------------- settings

# A test fails when the package reads a variable that is not here.
VARIABLES = {
    "OPENAI_API_KEY": ("the key for `--model`'s server; never written anywhere", "none"),
    "OPENAI_BASE_URL": (
        "the server's address if `--base-url` is not given; read by the client",
        "OpenAI's own",
    ),
    "QDRANT_API_KEY": ("the key for `qdrant://` addresses", "none"),
    "SUFFICE_KEYS": (
        "the file of API keys, for `suffice serve` and `suffice serve key`",
        "none: only this machine can connect",
    ),
    "SUFFICE_CACHE": (
        "cache of what is derived from a library on Qdrant",
        "`suffice` in XDG_CACHE_HOME",
    ),
    "XDG_CACHE_HOME": ("the user's cache, used if SUFFICE_CACHE is not set", "`~/.cache`"),
    "OMP_NUM_THREADS": (
        "threads of the numerical libraries and of the reader; `suffice serve` sets 1 per worker if unset",
        "all cores",
    ),
    "MALLOC_ARENA_MAX": (
        "pools of freed memory; `suffice serve` sets 2 per worker if unset",
        "the C library's own",
    ),
    "ORT_DISABLE_TELEMETRY": (
        "`import suffice` sets 1 if unset: onnxruntime reports nothing to its maker",
        "1",
    ),
    SETTINGS_VARIABLE: ("internal: set by `suffice serve` for its workers", ""),
    METRICS_DIR_VARIABLE: (
        "internal: set by `suffice serve` with several workers, for prometheus-client",
        "",
    ),
}
DEVELOPMENT_VARIABLES = {
    "SUFFICE_DATA": (
        "the folder of public data sets, for tests, benchmarks and `make results`",
        "`../shared/data`",
    ),
    "QDRANT_URL": (
        "servers for tests and benchmarks, `host:port` with commas",
        "started if available",
    ),
    "CI": ("if set, a skipped live test fails", ""),
}


def variables_read() -> set[str]:
    """Every environment variable that the source reads, constants resolved."""
    found = set()
    for module, text in texts().items():
        asked = re.findall(r"environ(?:\.get\(|\.setdefault\(|\[)([\w\"]+)|envvar=([\w\"]+)", text)
        asked += [(name, "") for name in re.findall(r"(\w+) (?:not )?in os\.environ", text)]
        for name in filter(None, (one for pair in asked for one in pair)):
            found.add(
                name.strip('"') if name.startswith('"') else getattr(import_module(module), name)
            )
    return found


def settings() -> str:
    variables = [(f"`{name}`", *told) for name, told in VARIABLES.items()]
    working = [(f"`{name}`", *told) for name, told in DEVELOPMENT_VARIABLES.items()]
    return "\n".join(
        [
            "# Settings\n",
            "There is no settings file: commands take options, functions take arguments.\n",
            "## Environment variables\n",
            table(("variable", "meaning", "default"), variables),
            "For developing suffice:\n",
            table(("variable", "meaning", "default"), working),
            "## The service\n",
            "Options of [`suffice serve`](commands.md), or fields of `suffice.service.Settings`.\n",
            _record_table(Settings, _option_help("serve")),
            "## Limits of the service\n",
            "What one worker accepts: `--limit NAME=NUMBER`.\n",
            _record_table(Limits),
            "## Budget of a question\n",
            f"`suffice ask`, `suffice.ask(budget=...)`. {_docstring(Budget)}\n",
            _record_table(Budget, _option_help("ask")),
            f"Prices: {_docstring(Prices)}\n",
            _record_table(Prices),
            "## Budget of an expansion\n",
            f"`Library.complete(budget=...)`. {_docstring(ExpansionBudget)}\n",
            _record_table(ExpansionBudget),
            "## Costs of mistakes\n",
            f"`--costs`, `Gate.fit(policy='cost', costs=...)`. {_docstring(Costs)}\n",
            _record_table(Costs),
        ]
    )


def _docstring(record: type) -> str:
    return " ".join((inspect.getdoc(record) or "").split())


def _option_help(name: str) -> dict[str, str]:
    """Option -> what its help says."""
    command: Any = typer.main.get_command(app)
    return {one.name: getattr(one, "help", None) or "" for one in command.commands[name].params}


def _record_table(record: Any, helps: dict[str, str] | None = None) -> str:
    """A record's fields with defaults; the meaning is the comment behind the field, or the help of
    the option so named.
    """
    comments = dict(
        re.findall(r"^    (\w+): .*?  # (.*)$", inspect.getsource(record), re.MULTILINE)
    )
    renamed = {"gates": "gate", "model_seconds": "timeout_s"}
    rows = []
    for one in fields(record):
        made = one.default_factory() if one.default_factory is not MISSING else one.default
        default = "see below" if one.name in ("limits", "prices") else f"`{made!r}`"
        helped = (helps or {}).get(renamed.get(one.name, one.name), "")
        rows.append((f"`{one.name}`", default, comments.get(one.name) or helped))
    return table(("setting", "default", "meaning"), rows)


# --------------------------------------------------------------------------------------------- HTTP


def http_routes() -> str:
    """Every route with its request, its response and its errors."""
    openapi = build_openapi(create_app(Settings()).app)
    schemas = openapi["components"]["schemas"]
    lines = [
        "# HTTP\n",
        "The routes of `suffice serve`; as OpenAPI: `GET /openapi.json`. Every JSON response has one envelope: `ok`, "
        "`data`, `error` (`code`, `message`, `hint`), `request_id`. [How to serve](../howto/serve.md).\n",
    ]
    for path, routes in openapi["paths"].items():
        for method, route in routes.items():
            lines += _route(f"{method.upper()} {path}", route, schemas)
    lines += [
        "## Errors\n",
        table(
            ("status", "why"),
            [(str(code), why) for code, why in sorted(ERROR_DESCRIPTIONS.items())],
        ),
    ]
    named = [name for name in schemas if not name.startswith("Envelope") and name != "Failure"]
    lines.append("## Schemas\n")
    for name in sorted(named):
        lines += [f"### {name}\n", *_description(schemas[name]), _field_table(schemas[name])]
    return "\n".join(lines)


def _route(title: str, route: dict[str, Any], schemas: dict[str, Any]) -> list[str]:
    lines = [f"## `{title}`\n", route.get("description", "") + "\n"]
    for kind, body in route.get("requestBody", {}).get("content", {}).items():
        lines.append(f"Body: {_shape(body.get('schema', {}))} as `{kind}`.\n")
    if asked := route.get("parameters"):
        rows = [
            (f"`{one['name']}`", _bounds(one["schema"]), one.get("description", ""))
            for one in asked
        ]
        lines.append(table(("parameter", "kind", "meaning"), rows))
    for kind, body in route["responses"]["200"].get("content", {}).items():
        lines.append(f"Response: {_payload(body.get('schema', {}), schemas)} as `{kind}`.\n")
    refused = sorted(code for code in route["responses"] if code != "200")
    return [*lines, f"Errors: {', '.join(refused)}.\n"]


def _payload(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """The schema of the envelope's `data`."""
    whole = schemas.get(schema.get("$ref", "").rpartition("/")[2], {})
    data = whole.get("properties", {}).get("data")
    return _shape(data) if data else _shape(schema) if schema else "text"


def _description(schema: dict[str, Any]) -> list[str]:
    return [schema["description"] + "\n"] if "description" in schema else []


def _field_table(schema: dict[str, Any]) -> str:
    needed = schema.get("required", ())
    rows = []
    for name, one in schema.get("properties", {}).items():
        given = "" if name in needed or "default" not in one else f"`{one['default']!r}`"
        rows.append(
            (
                f"`{name}`" + (" (required)" if name in needed else ""),
                _bounds(one),
                given,
                one.get("description", ""),
            )
        )
    return table(("field", "kind", "default", "meaning"), rows)


def _shape(schema: dict[str, Any]) -> str:
    """A schema in a word: its name, or its JSON type."""
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
    """The type and its bounds."""
    said = {
        "minimum": "at least {}", "maximum": "at most {}", "maxLength": "at most {:,} characters", "maxItems": "at most {:,}",
        "exclusiveMinimum": "above {}",
    }  # fmt: skip
    parts = (schema, *schema.get("anyOf", ()))
    told = [text.format(int(part[name]) if float(part[name]).is_integer() else part[name])
            for part in parts for name, text in said.items() if name in part]  # fmt: skip
    return ", ".join([_shape(schema), *told])


PAGES = {
    "commands.md": commands,
    "features.md": features,
    "metrics.md": metrics,
    "retrievers.md": retrievers,
    "errors.md": error_tree,
    "python.md": python_names,
    "formats.md": formats,
    "settings.md": settings,
    "http.md": http_routes,
}
