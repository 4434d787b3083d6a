"""`suffice serve`: the HTTP service, and `suffice serve key`: its API keys."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from suffice.cli import options as opt
from suffice.cli.loaders import open_judge, open_library, open_model, verdict_log
from suffice.cli.output import command, print_json, say
from suffice.errors import InputError, MissingExtraError, did_you_mean
from suffice.service.settings import Limits, Settings

app = typer.Typer(invoke_without_command=True)
key = typer.Typer(help="Manage the API keys of the service.", no_args_is_help=True)
app.add_typer(key, name="key")

_KEY_FILE = Option(envvar="SUFFICE_KEYS", help="Key file; it holds only hashes.")
KeyFile = Annotated[Path, _KEY_FILE]
DEFAULTS = Settings()


@app.callback()
@command
def serve(
    context: typer.Context,
    library: opt.LibraryOption = None,
    host: Annotated[
        str, Option(help="Address to listen on; one that others can reach needs --keys.")
    ] = DEFAULTS.host,
    port: Annotated[
        int, Option(min=0, max=65535, help="Port; 0 picks a free one.")
    ] = DEFAULTS.port,
    workers: Annotated[
        int, Option(min=1, max=64, help="Worker processes; use one per core.")
    ] = DEFAULTS.workers,
    gate: Annotated[
        list[str] | None, Option(help="Repeatable: 'default', a folder, or NAME=FOLDER.")
    ] = None,
    gate_folder: Annotated[Path | None, Option(help="Folder for the gates of /v1/adapt.")] = None,
    preset: opt.Preset = DEFAULTS.preset,
    keys: Annotated[Path | None, _KEY_FILE] = None,
    report: Annotated[Path | None, Option(help="A run of `evaluate gate --out` to show.")] = None,
    label: Annotated[
        Path | None, Option(help="Questions and hits to label on the page, as JSON Lines.")
    ] = None,
    labels: Annotated[
        Path | None,
        Option(help="Store labels of --label questions and of served checks here."),
    ] = None,
    model: opt.ModelName = None,
    base_url: opt.BaseUrl = None,
    timeout_s: opt.ModelTimeout = DEFAULTS.model_seconds,
    judge: opt.JudgeAddress = None,
    limit: Annotated[
        list[str] | None, Option(help="Repeatable: a limit like concurrent_requests=128.")
    ] = None,
    shadow: opt.VerdictLogFile = None,
    shadow_texts: opt.VerdictLogTexts = False,
    log_texts: Annotated[bool, Option("--log-texts", help="Write questions to the log.")] = False,
    quiet: Annotated[bool, Option("--quiet", help="Log errors only.")] = False,
) -> None:
    """Serve checks, searches and questions over HTTP until stopped."""
    if context.invoked_subcommand is not None:
        return
    from suffice.engines.qdrant import is_qdrant_address

    if library is not None and not is_qdrant_address(library):
        library = str(Path(library).resolve())  # workers may run in another folder
    paths = {"gate_folder": gate_folder, "keys": keys, "report": report}
    paths |= {"label": label, "labels": labels, "shadow": shadow}
    settings = Settings(
        host=host,
        port=port,
        workers=workers,
        library=library,
        gates=_parse_gates(gate or ["default"]),
        preset=preset,
        model=model,
        base_url=base_url,
        model_seconds=timeout_s,
        judge=judge,
        log_texts=log_texts,
        log_requests=not quiet,
        shadow_texts=shadow_texts,
        limits=_parse_limits(limit or []),
        **{name: str(path.resolve()) for name, path in paths.items() if path is not None},
    ).validate()
    verdict_log(shadow, shadow_texts)
    _check_openable(settings)
    try:
        import fastapi  # noqa: F401
        import httptools  # noqa: F401
        import prometheus_client  # noqa: F401

        from suffice.service.server import run_server
    except ImportError as error:
        raise MissingExtraError("suffice serve", extra="serve") from error
    if shadow is not None:
        say(f"logging verdicts to {shadow}; next: suffice report --shadow {shadow}")
    run_server(settings)


def _check_openable(settings: Settings) -> None:
    """Report a wrong path, address or limit once, here, and not in every worker."""
    from suffice.evaluation.gate_runs import GateRun
    from suffice.gate.gate_ref import GateRef

    for path in settings.gates.values():
        GateRef.named(path, settings.preset)
    if settings.keys is not None:
        from suffice.service.keys import ApiKeys

        if not ApiKeys(settings.keys).all():
            new = f"suffice serve key new --keys {settings.keys} --name NAME"
            say(f"note: {settings.keys} has no key, so no client has access\nnext: {new}")
    if settings.report is not None:
        GateRun.load(Path(settings.report))
    if settings.labels_path is not None:
        from suffice.service.labelling import LabelQueue, load_items

        if settings.label is not None:
            load_items(Path(settings.label))
        LabelQueue(settings.labels_path)
    if settings.library is not None:
        open_library(settings.library).close()
    if settings.gate_folder is not None and Path(settings.gate_folder).is_file():
        message = f"{settings.gate_folder} is a file, expected a folder for new gates"
        raise InputError(message, hint="name a folder: --gate-folder DIR")
    open_model(settings.model, settings.base_url, timeout_s=settings.model_seconds)
    if settings.judge is not None:
        open_judge(settings.judge)


def _parse_gates(options: list[str]) -> dict[str, str]:
    """The first without a name is the default; others are named after their folder."""
    gates: dict[str, str] = {}
    for option in options:
        name, equals, path = option.partition("=")
        if not equals:
            name, path = ("default" if "default" not in gates else Path(option).name), option
        if name in gates:
            raise InputError(f"two gates are named {name!r}", hint="name them: --gate news=FOLDER")
        gates[name] = path if path == "default" else str(Path(path).resolve())
    gates.setdefault("default", next(iter(gates.values())))
    return gates


def _parse_limits(options: list[str]) -> Limits:
    known: dict[str, type] = {name: type(value) for name, value in asdict(Limits()).items()}
    given = {}
    for option in options:
        name, _, value = option.partition("=")
        if name not in known:
            message = f"--limit {option}: no limit is named {name!r}"
            raise InputError(message, hint=did_you_mean(name, known))
        try:
            given[name] = known[name](value)
        except ValueError as error:
            message = f"--limit {option}: {value!r} is not a number"
            raise InputError(message, hint=f"for example --limit {name}=10") from error
    return Limits(**given)


@key.command("new")
@command
def new_key(
    keys: KeyFile,
    name: Annotated[str, Option(help="Name of its user.")],
    write: Annotated[bool, Option("--write", help="Allow changes to the library.")] = False,
    label: Annotated[
        bool, Option("--label", help="Allow labelling, which includes reading what others checked.")
    ] = False,
    json: opt.Json = False,
) -> None:
    """Create a key. Its token is shown once."""
    from suffice.service.keys import LABEL, READ, WRITE, ApiKeys

    scopes = (READ, *([WRITE] if write else []), *([LABEL] if label else []))
    token, created = ApiKeys(keys).create(name, scopes)
    if json:
        record = {"token": token, "key_id": created.key_id, "name": name, "scopes": created.scopes}
        print_json(record)
    else:
        print(token)
        say(f"it is not shown again; {name} may {' and '.join(created.scopes)}")
        say(
            f"next: suffice serve --keys {keys}; send the header Authorization: Bearer {token[:8]}…"
        )


@key.command("list")
@command
def list_keys(keys: KeyFile, json: opt.Json = False) -> None:
    """List the keys, without their tokens."""
    from suffice.service.keys import ApiKeys

    found = [asdict(api_key) for api_key in ApiKeys(keys).all()]
    if json:
        print_json(
            [{name: record[name] for name in record if name != "sha256"} for record in found]
        )
        return
    for record in found:
        scopes = " ".join(record["scopes"])
        print(f"{record['key_id']}  {scopes:<10}  {record['made_at']}  {record['name']}")
    if not found:
        print(f"{keys} has no key\n\nnext: suffice serve key new --keys {keys} --name NAME")


@key.command("revoke")
@command
def revoke_key(
    keys: KeyFile,
    name: Annotated[str, Argument(help="The key's name or id.")],
    json: opt.Json = False,
) -> None:
    """Revoke a key. Running services reject its token from the next request on."""
    from suffice.service.keys import ApiKeys

    revoked = ApiKeys(keys).revoke(name)
    if json:
        print_json({"key_id": revoked.key_id, "name": revoked.name})
    else:
        print(f"revoked {revoked.name} ({revoked.key_id})")
