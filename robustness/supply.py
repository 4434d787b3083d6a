"""The supply chain: packages pinned by hash, allowed licences, a small base install, known
vulnerabilities.

`make lock` writes requirements.lock. The bare check runs the core in a process that can import
nothing but the base install; a full run repeats it in a fresh environment installed by hash.
Vulnerabilities are looked up if the tools of `make audit` and a network are available; otherwise
the table says so.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from benchmarks.reporting import ResultTable
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LOCK, CONSTRAINTS = ROOT / "requirements.lock", ROOT / "constraints.txt"
PATIENCE_S = 1800  # for a slow package index
TOOLS = ROOT / ".cache" / "tools" / "bin"
PINNED = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)[ ]*(?:;(?P<marker>[^\\\n]*))?",
    re.MULTILINE,
)

# Allowed licences: none is copyleft for code that uses the package.
ALLOWED = frozenset(
    "0BSD AFL-2.1 Apache-2.0 BSD BSD-2-Clause BSD-3-Clause CC0-1.0 CNRI-Python ISC MIT MIT-0 MIT-CMU MPL-2.0 PSF-2.0 "
    "Public-Domain Zlib".split()
)
# Reviewed by hand: mostly public domain; the GPL covers an editor mode that is not installed.
REVIEWED = frozenset({"docutils"})
# Spellings of packages that do not use SPDX names.
SPELLINGS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Academic Free License (AFL)": "AFL-2.1",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Apache2.0": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}

# Only the standard library, the base install and suffice can be imported.
BARE_SCRIPT = """
import importlib.metadata, json, sys
kept = set(json.loads(sys.argv[1]))
owners = importlib.metadata.packages_distributions()
plain = lambda name: name.lower().replace("_", "-").replace(".", "-")
absent = {name for name, owned_by in owners.items() if not kept & set(map(plain, owned_by))}

class WithoutExtras:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in absent else self.finder.find_spec(name, path, target)

sys.meta_path[:] = map(WithoutExtras, sys.meta_path)
import suffice
ada = suffice.Document("ada", "Ada was taught by Mary.", "Ada")
village = [ada, suffice.Document("mary", "Mary was born in 1780.", "Mary")]
question = "When was the teacher of Ada born?"
with suffice.Library.build(sys.argv[2], village) as library:
    gate = suffice.Gate.load()
    hits = library.search(question, k=2)
    verdict = gate.check(question, [(one, hit.score) for one, hit in zip(library.get([hit.doc_id for hit in hits]), hits)])
    completion = library.complete(question, gate)
    trace = suffice.ask(question, library, gate)
print(json.dumps({"p": verdict.p_complete, "hits": len(completion.hits), "steps": len(trace.steps), "absent": len(absent)}))
"""


@dataclass(frozen=True)
class Pin:
    version: str
    marker: str = ""
    hashes: int = 0


def pins(path: Path) -> dict[str, Pin]:
    """Every pinned package of a requirements file, with its number of hashes."""
    text = path.read_text(encoding="utf-8")
    found = list(PINNED.finditer(text))
    ends = [one.start() for one in found[1:]] + [len(text)]
    return {
        canonicalize_name(one["name"]): Pin(
            one["version"],
            (one["marker"] or "").strip(),
            text[one.end() : end].count("--hash=sha256:"),
        )
        for one, end in zip(found, ends)
    }


def disagreements(lock: Path = LOCK, constraints: Path = CONSTRAINTS) -> list[str]:
    """Where the lock differs from the constraints or lacks a hash; packages for other systems are
    only in the lock.
    """
    locked, wanted = pins(lock), pins(constraints)
    wrong = [
        f"{name} {one.version} is not locked" for name, one in wanted.items() if name not in locked
    ]
    for name, one in locked.items():
        if not one.hashes:
            wrong.append(f"{name} has no hash")
        if name not in wanted:
            wrong += [] if one.marker else [f"{name} is locked and not in the constraints"]
        elif one.version != wanted[name].version:
            wrong.append(
                f"{name} is locked at {one.version}, and constrained to {wanted[name].version}"
            )
    return wrong


# ---- licences


def licences_in(about: metadata.PackageMetadata) -> tuple[str, ...]:
    """The licences that a package states, as SPDX names: from its expression, its classifiers, or
    its text.
    """
    expression = (about.get_all("License-Expression") or [None])[0]
    if expression is None:
        classes = [
            one.split(" :: ")[-1]
            for one in about.get_all("Classifier") or []
            if one.startswith("License ::")
        ]
        words = (about.get_all("License") or [""])[0].strip().splitlines()[:1]
        spelled = [one for one in classes if one != "OSI Approved"] or words or ["unknown"]
        expression = " AND ".join(SPELLINGS.get(one, one) for one in spelled)
    atoms = re.split(r"\s+(?:AND|OR|and|or)\s+|[()]", expression)
    return tuple(
        dict.fromkeys(SPELLINGS.get(one.strip(), one.strip()) for one in atoms if one.strip())
    )


def licences(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The licences of those packages that are installed here."""
    found = {}
    for name in names:
        try:
            found[name] = licences_in(metadata.metadata(name))
        except metadata.PackageNotFoundError:
            continue  # for another system or another Python
    return found


def forbidden(found: dict[str, tuple[str, ...]]) -> list[str]:
    return [
        f"{name}: {one}"
        for name, named in found.items()
        if name not in REVIEWED
        for one in named
        if one not in ALLOWED
    ]


# ---- base install


def base_install() -> set[str]:
    """What `pip install suffice` installs without any extra."""
    seen, waiting = set[str](), {"suffice"}
    while waiting:
        name = waiting.pop()
        seen.add(name)
        for text in metadata.requires(name) or []:
            needed = Requirement(text)
            if needed.marker is None or Marker(str(needed.marker)).evaluate({"extra": ""}):
                waiting |= {canonicalize_name(needed.name)} - seen
    return seen


def bare_check(python: str = sys.executable, kept: Iterable[str] = ()) -> dict[str, float]:
    """What the core returns when only the base install can be imported; RuntimeError if it needs
    more.
    """
    with tempfile.TemporaryDirectory() as folder:
        kept = sorted({*base_install(), *kept})
        command = [python, "-c", BARE_SCRIPT, json.dumps(kept), str(Path(folder) / "library")]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=folder, check=False
        )
    if done.returncode:
        raise RuntimeError(f"the core does not run without the extras:\n{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def fresh_check() -> str:
    """The same in a new environment with the base install alone, installed by hash; or why not."""
    blocks = re.split(r"\n(?=[A-Za-z0-9])", LOCK.read_text(encoding="utf-8"))
    chosen = [one for one in blocks if canonicalize_name(one.partition("==")[0]) in base_install()]
    with tempfile.TemporaryDirectory() as folder:
        python, wanted = Path(folder) / "bin" / "python", Path(folder) / "base.lock"
        wanted.write_text("\n".join(chosen) + "\n", encoding="utf-8")
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--require-hashes",
            "--no-deps",
            "--requirement",
            wanted,
        ]
        try:
            done = subprocess.run(
                [str(one) for one in install],
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE_S,
            )
        except subprocess.TimeoutExpired:
            return f"not installed within {PATIENCE_S / 60:g} minutes"
        if done.returncode:
            return f"not installed: {done.stderr.strip().splitlines()[-1]}"
        return f"p {bare_check(str(python))['p']:.4f}"


# ---- tables


def lock_table() -> ResultTable:
    locked, wrong = pins(LOCK), disagreements()
    row = (
        str(len(locked)),
        str(len(pins(CONSTRAINTS))),
        f"{sum(one.hashes for one in locked.values()):,}",
        str(len(wrong)),
    )
    return ResultTable(
        "Pinned, with hashes",
        "requirements.lock against constraints.txt. Required: every pin locked at its version, and none without a hash.",
        ("locked", "constrained", "hashes", "disagreements"),
        (row,),
        tuple(wrong[:10]),
        kept=not wrong,
    )


def bare_table(quick: bool) -> ResultTable:
    whole, bare = len(pins(LOCK)), bare_check()
    size = sum(installed_size(name) for name in base_install()) / 1e6
    rows = [
        ("packages of a base install, ourselves included", str(len(base_install()))),
        ("packages locked in all", str(whole)),
        ("MB of the base install", f"{size:,.0f}"),
        ("modules that could not be imported", f"{bare['absent']:,.0f}"),
        ("build, search, check, complete and ask without them", f"p {bare['p']:.4f}"),
    ]
    fresh = "not tried in a short run" if quick else fresh_check()
    rows.append(("the same in a fresh environment, installed by hash", fresh))
    says = "The core with every extra absent. Required: it runs and gives the same results."
    same = quick or fresh == rows[-2][1]
    return ResultTable("A base install is enough", says, ("what", "figure"), tuple(rows), kept=same)


def installed_size(name: str) -> int:
    listed = metadata.files(name) or []
    return sum(
        path.stat().st_size
        for path in (Path(str(one.locate())) for one in listed)
        if path.is_file()
    )


def licence_table() -> ResultTable:
    base, found = base_install(), licences(pins(LOCK))
    wrong = forbidden(found)
    rows = sorted(
        (name, ", ".join(named), "base" if name in base else "extra or tests")
        for name, named in found.items()
    )
    return ResultTable(
        "Licences",
        f"Of all {len(rows)} packages that are locked and installed here, as they state them. "
        f"Allowed: {', '.join(sorted(ALLOWED))}.",
        ("package", "licence", "comes with"),
        tuple(rows),
        tuple(wrong),
        kept=not wrong,
    )


def external_table() -> ResultTable:
    return ResultTable(
        "External checks",
        "A bill of materials (`make sbom`) and known vulnerabilities (`make audit`, which needs the network).",
        ("what", "figure"),
        (
            ("components in the bill of materials", sbom_size()),
            ("known vulnerabilities", known_vulnerabilities()),
        ),
    )


def sbom_size() -> str:
    tool = TOOLS / "cyclonedx-py"
    if not tool.exists():
        return "not made: `make sbom` brings the tool"
    done = subprocess.run(
        [str(tool), "environment", "-o", "-", sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    return (
        str(len(json.loads(done.stdout)["components"]))
        if not done.returncode
        else f"failed: {done.stderr.strip()[-100:]}"
    )


def known_vulnerabilities() -> str:
    """How many are known, or that nobody could be asked.

    A package that was not found does not count as safe.
    """
    tool = TOOLS / "pip-audit"
    if not tool.exists():
        return "not asked: `make audit` brings the tool"
    command = [
        str(tool),
        "--require-hashes",
        "--disable-pip",
        "--progress-spinner",
        "off",
        "-f",
        "json",
        "-r",
        str(LOCK),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        dependencies = json.loads(done.stdout)["dependencies"]
    except ValueError:
        return "not asked: no network to the service that knows them"
    unknown = sum("skip_reason" in one for one in dependencies)
    if unknown == len(dependencies):
        return f"not asked: the service that knows them was not reached for any of {unknown}"
    return f"{sum(len(one.get('vulns', ())) for one in dependencies)} in {len(dependencies) - unknown} packages; {unknown} not found there"


def tables(quick: bool) -> Iterator[ResultTable]:
    yield lock_table()
    yield bare_table(quick)
    yield licence_table()
    yield external_table()
