"""Crash-safe files and folders, and arrays and networks from untrusted files.

An artefact (a library, a gate, a run) is a folder with `manifest.json`: kind, format version,
settings, seed, hashes of its inputs and files, package versions. Everything is written to a draft,
fsynced and renamed, so that a crash leaves the old state or the new one. A draft is locked while
its writer lives; the next writer removes the drafts of dead ones.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import io
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from suffice.errors import DataError, InputError, NotReadyError, disk_hint
from suffice.storage.locks import ON_WINDOWS, lock_file

if TYPE_CHECKING:
    import numpy.typing as npt

MANIFEST = "manifest.json"
_PACKAGES = "suffice numpy scipy scikit-learn bm25s tantivy wordllama onnxruntime".split()
_TRIES = 100
_MAX_JSON_BYTES = 64 * 1024 * 1024  # for settings and small tables


def cache_folder() -> Path:
    """Where this machine keeps what can be fetched or made again."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("SUFFICE_CACHE") or Path(cache) / "suffice")


@dataclass(frozen=True)
class Manifest:
    """How an artefact was made, and the hashes of its files."""

    kind: str
    version: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    packages: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        maps = (self.settings, self.inputs, self.files, self.packages)
        if not (
            isinstance(self.kind, str)
            and type(self.version) is int
            and all(isinstance(one, dict) for one in maps)
        ):
            raise TypeError("a field has the wrong type")


@contextmanager
def new_artefact(
    path: Path,
    *,
    kind: str,
    version: int,
    settings: Mapping[str, Any] | None = None,
    inputs: Mapping[str, str] | None = None,
    seed: int | None = None,
) -> Iterator[Path]:
    """Yield an empty folder to fill; leaving the block without an error publishes it at `path`.

    `settings` and `inputs` are read when the block ends, so the block may still fill them.
    """
    path = _with_name(Path(path))
    draft, lock = _new_draft(path, folder=True)
    try:
        yield draft
        files = [one for one in sorted(draft.rglob("*")) if one.is_file()]
        hashes = {str(one.relative_to(draft)): sha256_of(one) for one in files}
        manifest = Manifest(
            kind,
            version,
            dict(settings or {}),
            dict(inputs or {}),
            hashes,
            seed,
            package_versions(),
        )
        text = json.dumps(asdict(manifest), indent=2, sort_keys=True) + "\n"
        (draft / MANIFEST).write_text(text, encoding="utf-8")
        for one in draft.rglob("*"):
            fsync_path(one)
        os.chmod(draft, 0o755)  # a draft is private, an artefact is readable by everyone
        fsync_path(draft)
        _replace_folder(draft, path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        os.close(lock)


def open_artefact(
    path: Path, *, kind: str, version: int, rebuild: str, check_hashes: bool = True
) -> Manifest:
    """Check an artefact and return its manifest. `rebuild` is the command that makes a new one."""
    path = _with_name(Path(path))
    _recover_folder(path)
    remove_dead_drafts(path)
    if not (path / MANIFEST).is_file():
        reason = f"it has no {MANIFEST}" if path.exists() else "there is no such folder"
        raise NotReadyError(f"{path} is not a {kind}: {reason}", hint=rebuild)
    try:
        found = Manifest(**read_json(path / MANIFEST))
    except (ValueError, TypeError) as error:
        raise DataError(f"cannot read {path / MANIFEST}: {error}", hint=rebuild) from error
    if found.kind != kind:
        raise InputError(f"{path} is a {found.kind}, expected a {kind}", hint=rebuild)
    if found.version != version:
        age = "newer" if found.version > version else "older"
        raise NotReadyError(
            f"{path} has format version {found.version}, {age} than the one this suffice reads"
            f" ({version})",
            hint=rebuild,
        )
    for name, expected in found.files.items() if check_hashes else ():
        part = path / name
        if not _is_inside(part, path):
            raise DataError(
                f"{path / MANIFEST} names a file outside its folder: {name!r:.200}", hint=rebuild
            )
        if not part.is_file() or sha256_of(part) != expected:
            raise DataError(
                f"{part} is missing or altered: its hash is not the one in the manifest",
                hint=rebuild,
            )
    return found


def check_replaceable(path: Path, *, kind: str) -> None:
    """InputError if writing an artefact to `path` would delete anything but one of its kind."""
    path = Path(path)
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    found = None
    if (path / MANIFEST).is_file():
        try:
            found = read_json(path / MANIFEST).get("kind")
        except (OSError, ValueError) as error:
            raise InputError(
                f"cannot read {path / MANIFEST}: {error}",
                hint=f"choose a new folder, or move this one away: mv {path} {path}-damaged",
            ) from error
    if found != kind:
        raise InputError(
            f"{path} exists and is not a {kind}: it would be overwritten",
            hint="choose a new or empty folder",
        )


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a small file of an artefact; ValueError if it is damaged."""
    if path.stat().st_size > _MAX_JSON_BYTES:
        raise ValueError(f"it has more than {_MAX_JSON_BYTES:,} bytes")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error
    if not isinstance(record, dict):
        raise ValueError("it is not a JSON object")
    return record


@contextmanager
def data_errors(what: str, *, hint: str) -> Iterator[None]:
    """Raise DataError if `what` cannot be read, however a damaged file makes it fail."""
    try:
        yield
    except (DataError, NotReadyError):
        raise
    except (
        InputError,
        ArithmeticError,
        AttributeError,
        LookupError,
        OSError,
        TypeError,
        ValueError,
        EOFError,
    ) as error:
        raise DataError(f"cannot read {what}: {error!r:.300}", hint=hint) from error


def _is_inside(part: Path, folder: Path) -> bool:
    """Whether a file or link resolves to a path in the folder; False for invalid names."""
    try:
        part.is_file()
        return part.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):
        return False


def write_atomically(path: Path, content: str | bytes | Iterable[str]) -> None:
    """Write a file atomically; several texts are streamed one after the other."""
    path = Path(path)
    if path.is_dir():  # else the error would name the draft, after the work
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    texts = [content] if isinstance(content, str | bytes) else content
    blocks = (text.encode() if isinstance(text, str) else text for text in texts)
    if is_device(path):
        with name_file_in_errors(path), path.open("wb") as stream:
            stream.writelines(blocks)
        return
    draft, handle = _new_draft(path, folder=False)
    stream = os.fdopen(handle, "wb")
    try:
        with name_file_in_errors(path):
            stream.writelines(blocks)
            stream.flush()
            os.fsync(stream.fileno())
        if ON_WINDOWS:  # it moves no open file, and keeps others from removing one
            stream.close()
        os.chmod(draft, 0o644)
        os.replace(draft, path)
        fsync_path(path.parent)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    finally:
        with suppress(OSError):  # what a full disk did not take
            stream.close()


def is_device(path: Path) -> bool:
    """Whether this is /dev/null, /dev/stdout or a pipe, which no file may replace."""
    return path.exists() and (not path.is_file() or path.parent == Path("/dev"))


def append_line(path: Path, line: str, *, max_bytes: int) -> None:
    """Append a line in one write, so that processes and threads can share the file.

    A file of `max_bytes` is renamed to NAME.1, replacing an earlier one, and a new one begins.
    """
    path = Path(path)
    handle = _open_to_append(path)
    try:
        if os.fstat(handle).st_size >= max_bytes:
            _rotate(path, handle)
            os.close(handle)
            handle = _open_to_append(path)
        content = line.encode() + b"\n"
        if not _ends_with_newline(handle):  # a writer died in the middle of a line
            content = b"\n" + content
        if os.write(handle, content) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(handle)


def append_record(path: Path, record: Mapping[str, Any]) -> None:
    """Append a JSON object as one line, durable and whole, while other processes may append, too.

    A partial line left by a crash is ended first. If the disk fails, nothing of the new line stays.
    """
    path = Path(path)
    line = json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    handle = _open_to_append(path)
    try:
        with suppress(OSError):  # a file system without locks
            lock_file(handle, wait=True)
        size = os.fstat(handle).st_size
        if not _ends_with_newline(handle):
            line = b"\n" + line
        try:
            if os.write(handle, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, size)
            raise
        if not size:
            fsync_path(path.parent)
    finally:
        os.close(handle)


def check_appendable(path: Path) -> None:
    """InputError if `append_line` could not write; a missing file is created."""
    try:
        os.close(_open_to_append(Path(path)))
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}"
        raise InputError(message, hint=disk_hint(error)) from error


def rotated_path(path: Path) -> Path:
    """Where `append_line` moves a full file."""
    return path.with_name(f"{path.name}.1")


def _open_to_append(path: Path) -> int:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    try:
        return os.open(path, flags, 0o600)  # private: it may contain users' questions
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, flags, 0o600)


def _rotate(path: Path, handle: int) -> None:
    """Rename the file behind the handle, unless another process does so or has done so."""
    # A process that still has it open appends to NAME.1, so no line is lost. Nobody waits for the
    # lock.
    with suppress(OSError):
        if lock_file(handle, wait=False) and os.path.samestat(path.stat(), os.fstat(handle)):
            os.replace(path, rotated_path(path))


def _ends_with_newline(handle: int) -> bool:
    if os.fstat(handle).st_size == 0:  # also true for a device
        return True
    os.lseek(handle, -1, os.SEEK_END)
    return os.read(handle, 1) in (b"\n", b"")


@contextmanager
def name_file_in_errors(path: Path) -> Iterator[None]:
    """Add the file name to errors of reading or writing it, which do not have one."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def sha256_of(path: Path) -> str:
    """The sha256 of a file's bytes, read in blocks."""
    with name_file_in_errors(path), Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def package_versions() -> dict[str, str]:
    """The installed versions of the packages that can change a result."""
    from importlib import metadata  # lazy: slow to import

    versions = {}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def fsync_path(path: Path) -> None:
    """Make a file's content, or the names in a folder, durable."""
    if ON_WINDOWS:  # it flushes neither a folder nor a file that is open for reading
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# --- drafts


def _new_draft(path: Path, *, folder: bool) -> tuple[Path, int]:
    """Create an empty draft next to `path`; the handle locks it until closed or at exit."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_dead_drafts(path)
    for _ in range(_TRIES):
        options: dict[str, Any] = {
            "prefix": f".{path.name}.",
            "suffix": ".draft",
            "dir": path.parent,
        }
        if folder:
            draft = Path(tempfile.mkdtemp(**options))
            # Windows opens no folder: there, a dead draft stays.
            handle = os.open(os.devnull if ON_WINDOWS else draft, os.O_RDONLY)
        else:
            handle, name = tempfile.mkstemp(**options)
            draft = Path(name)
        if not (folder and ON_WINDOWS):
            with suppress(OSError):  # a file system without locks
                lock_file(handle, wait=True)
        if draft.exists():  # else another process removed it as dead before it was locked
            return draft, handle
        os.close(handle)
    raise OSError(errno.EBUSY, "drafts keep disappearing", str(path))


def remove_dead_drafts(path: Path) -> None:
    """Remove the drafts of `path` whose writers died. Writing and opening do this themselves."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.draft"):
        with suppress(OSError):  # already gone, or owned by another user
            handle = os.open(left, os.O_RDONLY)
            try:
                if lock_file(handle, wait=False):
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
            finally:
                os.close(handle)


def _with_name(path: Path) -> Path:
    """The path; absolute if it has no name, like ".", because drafts are named after it."""
    return path.resolve() if path.name in ("", "..") else path


def _old_path(path: Path) -> Path:
    return path.parent / f".{path.name}.old"


def _replace_folder(draft: Path, path: Path) -> None:
    # A folder cannot be renamed over a non-empty one, so the old one is moved aside first. A crash
    # between the two renames is repaired by _recover_folder, which every open calls. If that
    # happens right now, the old folder is back in place and we try again.
    for last in (False,) * _TRIES + (True,):
        _recover_folder(path)
        if path.exists():
            os.rename(path, _old_path(path))
        try:
            os.rename(draft, path)
            break
        except OSError as error:
            if last or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                _recover_folder(path)
                raise
    fsync_path(path.parent)
    shutil.rmtree(_old_path(path), ignore_errors=True)


def _recover_folder(path: Path) -> None:
    if _old_path(path).exists():
        if path.exists():
            shutil.rmtree(_old_path(path), ignore_errors=True)
        else:
            with suppress(OSError):  # another process was faster, or the folder is read-only
                os.rename(_old_path(path), path)


# --- arrays and networks from files that anybody may have written. numpy is imported late, so that
# --- reading records does not load it.


def read_array(path: Path, *, largest: float | None = None, hint: str = "") -> npt.NDArray[Any]:
    """Read an .npy file; DataError if it is damaged or contains NaN or numbers beyond `largest`.

    The file must be exactly as long as its header says and must not contain objects.
    """
    try:
        with Path(path).open("rb") as stream:
            found = _parse_array(stream, Path(path).stat().st_size)
    except Exception as error:  # numpy parses the header with Python's tokenizer
        raise DataError(f"{path} is not a readable array: {error}", hint=hint) from error
    if largest is not None and found.dtype.kind == "f" and not (abs(found) <= largest).all():
        raise DataError(f"{path} contains NaN or numbers beyond {largest:,g}", hint=hint)
    return found


def array_from_bytes(content: bytes, what: str) -> npt.NDArray[Any]:
    """The same from bytes; `what` names them in the error."""
    try:
        return _parse_array(io.BytesIO(content), len(content))
    except Exception as error:
        raise DataError(f"{what} is not a readable array: {error}") from error


def _parse_array(stream: IO[bytes], size: int) -> npt.NDArray[Any]:
    import numpy as np
    from numpy.lib import format as npy

    if (version := npy.read_magic(stream)) != (1, 0):  # later versions allow headers of gigabytes
        raise ValueError(f"its format version is {version}")
    shape, by_columns, kind = npy.read_array_header_1_0(stream)
    if kind.hasobject:
        raise ValueError("it holds objects, which would have to be unpickled")
    left = size - stream.tell()
    if math.prod(shape) * kind.itemsize != left:
        raise ValueError(f"its header says {shape} of {kind}, but {left:,} bytes follow")
    if not math.prod(shape) or not kind.itemsize:
        return np.zeros(shape, kind)
    flat = np.frombuffer(bytearray(stream.read()), dtype=kind)
    return flat.reshape(shape[::-1]).T if by_columns else flat.reshape(shape)


def write_texts(folder: Path, name: str, texts: Iterable[str]) -> None:
    """Write texts as two arrays: NAME_bytes.npy has the bytes, NAME_ends.npy where each ends."""
    import numpy as np

    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(one) for one in encoded], dtype=np.int64)
    np.save(Path(folder) / f"{name}_ends.npy", ends)
    np.save(Path(folder) / f"{name}_bytes.npy", np.frombuffer(b"".join(encoded), dtype=np.uint8))


def read_texts(folder: Path, name: str, *, hint: str = "") -> list[str]:
    """Read what `write_texts` wrote; DataError if the two arrays do not match."""
    import numpy as np

    parts = (Path(folder) / f"{name}_{part}.npy" for part in ("ends", "bytes"))
    ends, letters = (read_array(part, hint=hint) for part in parts)
    try:
        check_row_offsets(np.concatenate([[0], ends]), letters)
        whole, bounds = letters.tobytes(), [0, *ends.tolist()]
        return [whole[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(bounds)]
    except ValueError as error:
        raise DataError(f"cannot read the texts {name} in {folder}: {error}", hint=hint) from error


def check_row_offsets(
    starts: npt.NDArray[Any], values: npt.NDArray[Any], *, below: int | None = None
) -> None:
    """ValueError unless values[starts[i]:starts[i + 1]] can be row i, all from 0 to `below`."""
    if (
        starts.ndim != 1
        or values.ndim != 1
        or not len(starts)
        or {starts.dtype.kind, values.dtype.kind} - {"i", "u"}
    ):
        raise ValueError("they are not lists of whole numbers")
    if starts[0] != 0 or starts[-1] != len(values) or (starts[1:] < starts[:-1]).any():
        raise ValueError("they do not fit together")
    if below is not None and len(values) and not 0 <= values.min() <= values.max() < below:
        raise ValueError(f"they point beyond the {below} there are")


def allowed_threads(threads: int = 0) -> int:
    """As many as given, or else OMP_NUM_THREADS, or else one per core."""
    return _chosen_threads(threads) or os.cpu_count() or 1


def _chosen_threads(threads: int) -> int:
    # onnxruntime ignores the variable: two workers with two threads each would compete for the
    # cores.
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    return threads or (int(allowed) if allowed.isdecimal() else 0)


def open_onnx(model: bytes | Path, *, threads: int, hint: str = "") -> Any:
    """An onnxruntime session for a network; DataError if it is damaged.

    `threads` 0 means OMP_NUM_THREADS, or all cores if unset. Bytes must contain all weights; a file
    may have some in other files of its folder.
    """
    import onnxruntime  # lazy: slow to import

    options = onnxruntime.SessionOptions()
    threads = _chosen_threads(threads)
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 4  # the error contains what it would print
    given = model if isinstance(model, bytes) else str(model)
    try:
        session = onnxruntime.InferenceSession(
            given, options, providers=["CPUExecutionProvider"], enable_fallback=0
        )
        for one in (*session.get_inputs(), *session.get_outputs()):
            _ = one.name, one.shape  # decoded on access: detects damaged names here
        return session
    except Exception as error:  # onnxruntime raises classes that it does not export
        what = "a network" if isinstance(model, bytes) else str(model)
        raise DataError(f"{what} is not a readable ONNX model: {error}", hint=hint) from error


class OnnxTrees:
    """A saved tree model that gives the probability of "yes". One thread, because batches are
    small.

    `content` has the bytes of an ONNX file, so that a loaded model can be saved.
    """

    ROUNDING = 1e-3  # sums of many small shares may miss 1 slightly
    BATCH_ROWS = 256  # above about 1,000 rows, onnxruntime needs four times as long per row

    def __init__(
        self, content: bytes, *, columns: int, hint: str = "fit and save it again"
    ) -> None:
        self.content, self._hint = content, hint
        self._session = open_onnx(content, threads=1, hint=hint)
        inputs = [(one.name, one.shape[1:]) for one in self._session.get_inputs()]
        outputs = [one.name for one in self._session.get_outputs()]
        if inputs != [("rows", [columns])] or outputs != ["p"]:
            raise DataError(
                f"a tree model takes {inputs}, expected 'rows' of {columns} columns", hint=hint
            )

    def p(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """(rows,), float32."""
        import numpy as np

        if not len(rows):
            return np.zeros(0)
        given = np.ascontiguousarray(rows, dtype=np.float32)
        blocks = (given[at : at + self.BATCH_ROWS] for at in range(0, len(rows), self.BATCH_ROWS))
        try:
            found = [self._session.run(["p"], {"rows": block})[0] for block in blocks]
            p = np.asarray(found[0] if len(found) == 1 else np.concatenate(found)).ravel()
        except Exception as error:  # onnxruntime does not export its error classes
            raise DataError(f"a tree model fails: {error}", hint=self._hint) from error
        if p.shape != (len(rows),):
            raise DataError(
                f"a tree model gives {len(p)} numbers for {len(rows)} rows", hint=self._hint
            )
        if not (p.min() > -self.ROUNDING and p.max() < 1 + self.ROUNDING):
            raise DataError(
                "a tree model gives numbers that are not probabilities", hint=self._hint
            )
        return p
