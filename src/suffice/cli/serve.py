"""`suffice serve`: the HTTP service, and `suffice serve key`: who may use it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from suffice.cli.options import BaseUrl, Json, LibraryOption, ModelName, ModelTimeout, Preset
from suffice.cli.output import handle_errors, print_json, say

app = typer.Typer(
    help="Serve checks, searches and questions over HTTP.", invoke_without_command=True
)
key = typer.Typer(help="API keys: who may use the service.", no_args_is_help=True)
app.add_typer(key, name="key")

KeyFile = Annotated[
    Path,
    typer.Option("--keys", envvar="SUFFICE_KEYS", help="The file that holds the keys' hashes."),
]


@app.callback()
def serve(
    context: typer.Context,
    library: LibraryOption = None,
    host: Annotated[
        str, typer.Option("--host", help="Where to listen; other than this machine only with keys.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="0: any that is free.")
    ] = 8080,
    workers: Annotated[
        int, typer.Option("--workers", min=1, max=64, help="Processes; one a core.")
    ] = 1,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            "--gate",
            help="'default', a folder made by `suffice fit`, or NAME=FOLDER; may be repeated.",
        ),
    ] = None,
    preset: Preset = "fast",
    keys: Annotated[
        Path | None,
        typer.Option(
            "--keys", envvar="SUFFICE_KEYS", help="Ask for keys: the file of `suffice serve key`."
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="A gate's run for the page: what `suffice evaluate gate --out` wrote."
        ),
    ] = None,
    model: ModelName = None,
    base_url: BaseUrl = None,
    timeout_s: ModelTimeout = 30.0,
    limit: Annotated[
        list[str] | None,
        typer.Option("--limit", help="Like concurrent_requests=128; may be repeated."),
    ] = None,
    log_texts: Annotated[
        bool, typer.Option("--log-texts", help="Write questions into the log.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Log faults only, not every request.")
    ] = False,
) -> None:
    """Serve checks, searches and questions over HTTP until stopped; `serve key` manages who may use it."""
    if context.invoked_subcommand is not None:
        return
    with handle_errors():
        from suffice.service.settings import Settings

        settings = Settings(
            host=host,
            port=port,
            workers=workers,
            library=None if library is None else _absolute_library(library),
            gates=_parse_gates(gate or ["default"]),
            preset=preset,
            report=None if report is None else str(report.resolve()),
            keys=None if keys is None else str(keys.resolve()),
            model=model,
            base_url=base_url,
            model_seconds=timeout_s,
            log_texts=log_texts,
            log_requests=not quiet,
            limits=_parse_limits(limit or []),
        ).validate()
        _check_openable(settings)
        _import_server()(settings)


def _absolute_library(library: str) -> str:
    """Workers may stand elsewhere; an address is the same everywhere."""
    from suffice.engines.qdrant import is_qdrant_address

    return library if is_qdrant_address(library) else str(Path(library).resolve())


def _import_server() -> Any:
    from suffice.errors import MissingExtraError

    try:
        import fastapi  # noqa: F401
        import httptools  # noqa: F401
        import prometheus_client  # noqa: F401

        from suffice.service.server import run_server
    except ImportError as error:
        raise MissingExtraError("suffice serve", extra="serve") from error
    return run_server


def _check_openable(settings: Any) -> None:
    """A wrong folder is said here, once, and not by every worker in turn."""
    from suffice.evaluation.gate_runs import GateRun
    from suffice.gate.gate_ref import GateRef
    from suffice.library import Library

    for place in settings.gates.values():
        GateRef.named(place, settings.preset)
    if settings.report is not None:
        GateRun.load(Path(settings.report))
    if settings.library is not None:
        Library.open(settings.library).close()


def _parse_gates(told: list[str]) -> dict[str, str]:
    """The first without a name is the default one; another is called like its folder."""
    from suffice.errors import InputError

    gates: dict[str, str] = {}
    for one in told:
        name, equals, place = one.partition("=")
        if not equals:
            name, place = ("default" if "default" not in gates else Path(one).name), one
        if name in gates:
            raise InputError(f"two gates are called {name!r}", hint="name them: --gate news=FOLDER")
        gates[name] = place if place == "default" else str(Path(place).resolve())
    gates.setdefault("default", next(iter(gates.values())))
    return gates


def _parse_limits(told: list[str]) -> Any:
    from suffice.errors import InputError, did_you_mean
    from suffice.service.settings import Limits

    known: dict[str, type] = {name: type(value) for name, value in asdict(Limits()).items()}
    given = {}
    for one in told:
        name, _, value = one.partition("=")
        if name not in known:
            raise InputError(
                f"--limit {one}: no limit is called {name!r}", hint=did_you_mean(name, known)
            )
        try:
            given[name] = known[name](value)
        except ValueError as error:
            raise InputError(
                f"--limit {one}: {value!r} is not a number", hint=f"for example --limit {name}=10"
            ) from error
    return Limits(**given)


# ------------------------------------------------------------------------------------------------------------------ keys


@key.command("new")
def new_key(
    keys: KeyFile,
    name: Annotated[str, typer.Option("--name", help="What to call it: who or what will use it.")],
    write: Annotated[bool, typer.Option("--write", help="It may also change the library.")] = False,
    json: Json = False,
) -> None:
    """Make a key. Its token is shown once."""
    with handle_errors(json=json):
        from suffice.service.keys import READ, WRITE, ApiKeys

        token, made = ApiKeys(keys).create(name, (READ, WRITE) if write else (READ,))
        if json:
            print_json(
                {"token": token, "key_id": made.key_id, "name": made.name, "scopes": made.scopes}
            )
        else:
            print(token)
            say(f"this is the only time it is shown; {made.name} may {' and '.join(made.scopes)}")
            say(
                f"next: suffice serve --keys {keys}, and send the header: Authorization: Bearer {token[:8]}…"
            )


@key.command("list")
def list_keys(keys: KeyFile, json: Json = False) -> None:
    """The keys of the file, without their tokens, which nobody has but their owners."""
    with handle_errors(json=json):
        from suffice.service.keys import ApiKeys

        known = ApiKeys(keys).all()
        if json:
            print_json(
                [
                    {name: value for name, value in asdict(one).items() if name != "sha256"}
                    for one in known
                ]
            )
            return
        for one in known:
            print(f"{one.key_id}  {' '.join(one.scopes):<10}  {one.made_at}  {one.name}")
        if not known:
            print(f"{keys} holds no key\n\nnext: suffice serve key new --keys {keys} --name NAME")


@key.command("revoke")
def revoke_key(
    keys: KeyFile,
    name: Annotated[str, typer.Argument(help="The key's name or id.")],
    json: Json = False,
) -> None:
    """Take a key out. Running services refuse its token from the next request on."""
    with handle_errors(json=json):
        from suffice.service.keys import ApiKeys

        gone = ApiKeys(keys).revoke(name)
        if json:
            print_json({"key_id": gone.key_id, "name": gone.name})
        else:
            print(f"revoked {gone.name} ({gone.key_id})")
