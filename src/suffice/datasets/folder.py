"""An ordinary folder: notes, pages, tables and chats become documents that record their origin.

    .md .txt .html    a document for each section; its heading is the title
    .csv .tsv         a document for each row: lines like "column: value"
    .json .jsonl      a document for each object, in the shapes of `suffice.gate.hits`, or a chat
    .pdf              documents for each page; needs the extra `pdf`
    chats             JSON messages with `ts`, `user` and `text` (Slack), or `role` and `content`,
                      alone or in a list `messages`; a .txt of lines like WhatsApp's

Long sections are split between paragraphs. `Document.extra` records the origin of a document:
`folder`, `path` in it, `line`, `page` or `item`, and `heading`, like "Handbook > Leave > Sick
leave". Unreadable files are listed and skipped. Hidden files, links and files that suffice made are
ignored.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

from suffice.datasets import jsonl
from suffice.datasets.dataset import Dataset, from_file
from suffice.datasets.gold import GoldQuestion
from suffice.datasets.locate import DatasetFiles
from suffice.errors import InputError, MissingExtraError
from suffice.gate.hits import normalize_documents
from suffice.storage import MANIFEST, BadRecords, read_jsonl, readable_file
from suffice.storage.fields import content_id, is_text
from suffice.types import Document

MAX_FILE_BYTES = 64 * 1024 * 1024  # read at once; JSON Lines are streamed
MAX_MARKDOWN_BYTES = 16 * 1024 * 1024  # parsing can take a hundred times as much memory
MAX_MANIFEST_BYTES = 16 * 1024 * 1024
MAX_CHARS = 1_000  # per passage: about the length that the gate was trained on
MAX_TITLE_CHARS = 200
HEADING_SEPARATOR = " > "
_BOMS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class _Passage:
    """A future document; `known` if the file itself defines the document."""

    text: str
    title: str
    place: dict[str, Any] = field(default_factory=dict)  # line, page, heading
    published_at: date | None = None
    known: Document | None = None


def load(files: DatasetFiles, *, skip_bad: bool = False) -> Dataset:
    """Load a folder, and questions from JSON Lines. Bad documents are always skipped and listed.

    `skip_bad` applies to the questions and to a missing extra.
    """
    if files.path is None or files.corpus is not None:
        hint = "--path FOLDER, and --questions FILE for questions"
        raise InputError("a folder has one path", hint=hint)
    questions = None if files.questions is None else readable_file(files.questions)
    return Folder(files.path, skip_pdf=skip_bad).dataset(questions, skip_bad=skip_bad)


def is_folder(path: Path) -> bool:
    """Whether these are ordinary files, not files of our own JSON Lines format."""
    if path.is_dir():
        names = (*jsonl.QUESTION_FILES, *jsonl.CORPUS_FILES)
        return not any((path / name).is_file() for name in names)
    return path.suffix.lower() in LOADERS.keys() - {".json", ".jsonl"}


class Folder:
    """The files of a folder, or one file. The attributes describe the last pass."""

    def __init__(self, path: Path, *, skip_pdf: bool = False) -> None:
        self.root = Path(path)
        if not self.root.exists():
            raise InputError(f"{self.root} does not exist", hint="check the path")
        if _is_artefact(self.root):
            hint = "give the folder of your own files"
            raise InputError(f"{self.root} is a folder that suffice made", hint=hint)
        if self.root.is_file() and not is_text(self.root.name):
            hint = "rename it"
            raise InputError(f"{_printable(self.root)} has a name that is not UTF-8", hint=hint)
        self.name = _printable(self.root.resolve().name)  # a part of document ids
        self._skip_pdf = skip_pdf
        self.read: set[str] = set()  # paths of the files that became documents
        self.unread: set[str] = set()  # paths not read, or not completely; also folders
        self.ignored: Counter[str] = Counter()  # files of other types, by suffix

    def dataset(self, questions: Path | None = None, *, skip_bad: bool = False) -> Dataset:
        def load_questions(path: Path, bad: BadRecords) -> Iterator[GoldQuestion]:
            return jsonl.load_questions(path, bad if skip_bad else BadRecords())

        asked = from_file(load_questions, questions)
        return Dataset("folder", documents=self.documents, questions=asked, skip_bad=True)

    def owns(self, document: Document) -> bool:
        """Whether the document came from a folder of this name."""
        return document.extra.get("folder") == self.name

    def is_gone(self, document: Document) -> bool:
        """Whether the document came from this folder and no longer exists in it.

        A file that exists but cannot be read keeps its earlier documents, and so do files in a
        folder that cannot be listed.
        """
        path = PurePosixPath(str(document.extra.get("path")))
        return self.owns(document) and self.unread.isdisjoint(map(str, (path, *path.parents)))

    def documents(self, bad: BadRecords) -> Iterator[Document]:
        """The documents of every file, ordered by path."""
        self.read, self.unread, self.ignored = set(), set(), Counter()
        files = list(self.files(bad))
        if any(file.suffix.lower() == ".pdf" for file in files) and not self._skip_pdf:
            try:
                _import_pypdf()
            except MissingExtraError as error:
                error.hint += ", or leave PDF files out: suffice build --skip-bad"
                raise
        seen: dict[str, str] = {}
        for file in files:
            path = self.path_of(file)
            skipped, found = bad.count, 0
            try:
                for document in self._documents_of(file, path, bad):
                    place = _place(document)
                    if (first := seen.setdefault(document.doc_id, place)) != place:
                        problem = f"document id {document.doc_id!r} is already used in {first}"
                        bad.reject(f"{file}{place.removeprefix(path)}", problem)
                        continue
                    found += 1
                    yield document
                if not found and bad.count == skipped:
                    raise InputError("has no text")
            except InputError as error:
                found = 0
                reason = str(error).removeprefix(str(file)).lstrip(": ")
                bad.reject(str(file), f"{reason}; {error.hint}" if error.hint else reason)
            except MissingExtraError as error:
                bad.reject(str(file), f"{error}: {error.hint}")
            except OSError as error:
                found = 0
                bad.reject(str(file), f"cannot be read: {error.strerror or error}")
            (self.read if found else self.unread).add(path)

    def files(self, bad: BadRecords) -> Iterator[Path]:
        """The files to read, in order. Links and folders that cannot be listed are bad records."""
        if self.root.is_file():
            yield self.root
            return

        waiting = [self.root]  # not os.walk: it recurses, and folders may be deep
        while waiting:
            home = waiting.pop()
            try:
                with os.scandir(home) as entries:
                    found = sorted(entries, key=lambda one: one.name)
            except OSError as error:
                bad.reject(_printable(home), f"cannot be listed: {error.strerror}")
                self.unread.add(home.relative_to(self.root).as_posix())
                continue
            inside = list[Path]()
            for one in found:
                if one.name.startswith("."):
                    continue
                if _is(one.is_dir):
                    if self._enters(one, bad):
                        inside.append(home / one.name)
                elif self._takes(one, bad):
                    yield home / one.name
            waiting += reversed(inside)

    def path_of(self, file: Path) -> str:
        return file.name if file == self.root else file.relative_to(self.root).as_posix()

    def _enters(self, folder: os.DirEntry[str], bad: BadRecords) -> bool:
        if folder.is_symlink():
            bad.reject(_printable(folder.path), "a link to a folder, not followed")
            return False
        return not _is_artefact(Path(folder.path))

    def _takes(self, entry: os.DirEntry[str], bad: BadRecords) -> bool:
        file = Path(entry.path)
        if file.suffix.lower() not in LOADERS:
            self.ignored[file.suffix.lower() or "no suffix"] += 1
            return False
        problem = ""
        if not is_text(self.path_of(file)):  # the root's own name does not matter
            problem = "its path is not UTF-8; rename it"
        elif entry.is_symlink():
            if _is(entry.is_file) and self._reads(file.resolve()):
                return False  # it is read at its own path
            problem = "a link out of the folder, to a hidden file, or a broken one, not followed"
        elif not _is(entry.is_file):
            problem = "not a regular file"
        if problem:
            bad.reject(_printable(file), problem)
            self.unread.add(self.path_of(file))
        return not problem

    def _reads(self, target: Path) -> bool:
        """Whether the target of a link is a file in this folder that is read anyway."""
        root = self.root.resolve()
        if not target.is_relative_to(root) or target.suffix.lower() not in LOADERS:
            return False
        return not any(one.startswith(".") for one in target.relative_to(root).parts)

    def _documents_of(self, file: Path, path: str, bad: BadRecords) -> Iterator[Document]:
        for number, one in enumerate(LOADERS[file.suffix.lower()](file, bad), start=1):
            extra = {"folder": self.name, "path": path, **one.place}
            known, default = one.known, f"{self.name}/{path}#{number}"
            if known is not None:
                doc_id = known.doc_id or default
                yield replace(known, doc_id=doc_id, extra={**known.extra, **extra})
            else:
                yield Document(
                    default, one.text, one.title, published_at=one.published_at, extra=extra
                )


def _place(document: Document) -> str:
    """The file that the document is from, with its line, or its place in a JSON list."""
    extra = document.extra
    number = extra.get("line", extra.get("item"))
    return f"{extra['path']}" if number is None else f"{extra['path']}:{number}"


def _is(kind: Callable[[], bool]) -> bool:
    """What a folder entry is; False if the system cannot tell, as for a link to itself."""
    try:
        return kind()
    except OSError:
        return False


def _printable(path: Path | str) -> str:
    """The path for a message: a name need not be valid UTF-8."""
    return str(path).encode("utf-8", "replace").decode()


def _is_artefact(folder: Path) -> bool:
    """Whether suffice made this folder: a library, a gate, a run."""
    manifest = folder / MANIFEST
    try:
        if not manifest.is_file():  # opening a pipe would block
            return False
        with manifest.open("rb") as stream:  # a user's own file may be huge
            value = json.loads(stream.read(MAX_MANIFEST_BYTES))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(value, dict) and {"kind", "version", "packages"} <= value.keys()


def read_text(file: Path, *, max_bytes: int | None = None) -> str:
    """The text of a file in UTF-8, or UTF-16 with a byte order mark; InputError if neither."""
    max_bytes = max_bytes or MAX_FILE_BYTES
    if (size := file.stat().st_size) > max_bytes:
        limit = f"{max_bytes // 2**20} MiB"
        raise InputError(f"{file} has {size // 2**20:,} MiB, more than {limit}", hint="split it")
    content = file.read_bytes()
    if not content:
        raise InputError(f"{file} is empty")
    try:
        if content.startswith(_BOMS):
            text = content.decode("utf-16")
        elif b"\0" in content:
            raise InputError(f"{file} is a binary file, expected text")
        else:
            text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        hint = "save it as UTF-8"
        raise InputError(f"{file} is not UTF-8 text, see line {line}", hint=hint) from error
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return text if is_text(text) else text.encode("utf-8", "replace").decode()


def _name(file: Path) -> str:
    """A title for a file without one: the file's name in words."""
    return re.sub(r"[_-]+", " ", file.stem).strip() or file.name


# ---- sections


@dataclass(slots=True)
class _Section:
    """A heading, and the paragraphs below it with their lines."""

    level: int
    heading: str
    line: int
    paragraphs: list[tuple[int, str]] = field(default_factory=list)


def _section_passages(sections: Iterable[_Section], title: str) -> Iterator[_Passage]:
    """One or more passages per section; a section without text only if it has no subsections."""
    listed, above = list(sections), list[_Section]()
    for at, one in enumerate(listed):
        above = [other for other in above if other.level < one.level]
        above += [one] if one.heading else []
        path = HEADING_SEPARATOR.join(other.heading for other in above) or title
        parts = list(_pack(one.paragraphs))
        is_leaf = at + 1 == len(listed) or listed[at + 1].level <= one.level
        if not parts and one.heading and is_leaf:
            parts = [(one.line, "")]
        for line, text in parts:
            yield _Passage(text, one.heading or title, {"line": line, "heading": path})


def _pack(
    paragraphs: Iterable[tuple[int, str]], *, glue: str = "\n\n"
) -> Iterator[tuple[int, str]]:
    """Join neighbouring paragraphs up to MAX_CHARS; split longer ones."""
    first, held, size = 0, list[str](), 0
    for line, text in (piece for one in paragraphs for piece in _cut(*one)):
        if held and size + len(text) > MAX_CHARS:
            yield first, glue.join(held)
            held, size = [], 0
        if not held:
            first = line
        held.append(text)
        size += len(text)
    if held:
        yield first, glue.join(held)


_CUTS = (re.compile(r"\n"), re.compile(r"[.!?]\s|[。！？]"), re.compile(r"\s"))


def _cut(line: int, text: str) -> Iterator[tuple[int, str]]:
    """Pieces of at most MAX_CHARS, split after a line, else a sentence, else a word."""
    start = 0
    while len(text) - start > MAX_CHARS:
        window = text[start : start + MAX_CHARS]
        ends = (max((one.end() for one in cut.finditer(window)), default=0) for cut in _CUTS)
        end = next((one for one in ends if one > MAX_CHARS // 2), MAX_CHARS)
        yield line, window[:end].strip("\n")
        line += window.count("\n", 0, end)
        start += end
    if text[start:].strip():
        yield line, text[start:].strip("\n")


def _paragraphs(text: str, first: int = 1) -> list[tuple[int, str]]:
    """Paragraphs between blank lines, with the line on which each starts."""
    found: list[tuple[int, str]] = []
    held: list[str] = []
    for number, line in enumerate([*text.split("\n"), ""], start=first):
        if line.strip():
            held.append(line.rstrip())
        elif held:
            found.append((number - len(held), "\n".join(held)))
            held = []
    return found


_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:[ \t]*(['\"]?)(.+?)\1[ \t]*$", re.MULTILINE)


def _load_markdown(file: Path, bad: BadRecords) -> Iterator[_Passage]:
    from markdown_it import MarkdownIt

    text, title = read_text(file, max_bytes=MAX_MARKDOWN_BYTES), _name(file)
    if front := _FRONT_MATTER.match(text):
        if named := _FRONT_TITLE.search(front[1]):
            title = named[2]
        text = "\n" * text.count("\n", 0, front.end()) + text[front.end() :]
    lines = text.split("\n")
    sections, start = [_Section(0, "", 1)], 0
    markdown = MarkdownIt("commonmark")
    # Skip inline parsing, except for headings: hostile emphasis or brackets would take long.
    tokens = MarkdownIt("commonmark").disable(["inline", "text_join"]).parse(text)
    for token, inline in pairwise(tokens):
        if token.type != "heading_open" or token.level or token.map is None:
            continue
        begin, end = token.map
        sections[-1].paragraphs = _paragraphs("\n".join(lines[start:begin]), start + 1)
        (parsed,) = markdown.parseInline(inline.content[: 4 * MAX_TITLE_CHARS])
        heading = "".join(
            " " if child.type == "softbreak" else child.content for child in parsed.children or ()
        )
        sections.append(_Section(int(token.tag[1:]), _one_line(heading), begin + 1))
        # If a heading is too long for a title, the text repeats it in full.
        start = end if len(inline.content) <= MAX_TITLE_CHARS else begin
    sections[-1].paragraphs = _paragraphs("\n".join(lines[start:]), start + 1)
    return _section_passages(sections, title)


def _load_text(file: Path, bad: BadRecords) -> Iterator[_Passage]:
    text, title = read_text(file), _name(file)
    if (messages := _whatsapp_messages(text)) is not None:
        return _chat_passages(messages, title)
    return _section_passages([_Section(0, "", 1, _paragraphs(text))], title)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:MAX_TITLE_CHARS]


# ---- HTML

_UNSEEN = frozenset(("script", "style", "noscript", "template", "nav"))
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_BLOCKS = _HEADINGS | frozenset(
    "address article aside blockquote body br caption dd div dl dt figcaption figure footer form"
    " header hr li main ol p pre section table tbody td th thead tr ul title".split()
)


class _HtmlSections(HTMLParser):
    """Headings and the text between them; a tab follows each table cell."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.sections = [_Section(0, "", 1)]
        self.title = ""
        self._inside: str | None = None  # the heading or title that is open
        self._unseen: list[str] = []
        self._held: list[str] = []
        self._line = 1

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("main", "article", "h1") and "nav" in self._unseen:
            self._unseen = []  # the navigation element was never closed
        if tag in _UNSEEN:
            self._unseen.append(tag)
        elif tag in _BLOCKS and tag not in ("td", "th"):
            self.flush()
            if tag in _HEADINGS or (tag == "title" and not self.title):
                self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        if tag in self._unseen:
            del self._unseen[self._unseen.index(tag) :]
        elif tag in ("td", "th"):
            self._held += ["\t"] if self._held else []
        elif tag in _BLOCKS:
            self.flush()

    def handle_data(self, data: str) -> None:
        if self._unseen:
            return
        if not self._held:
            blank = len(data) - len(data.lstrip())
            if blank == len(data):
                return
            self._line = self.getpos()[0] + data.count("\n", 0, blank)
        self._held.append(data)

    def flush(self) -> None:
        cells = ("".join(self._held)).split("\t")
        text = " | ".join(one for one in (" ".join(cell.split()) for cell in cells) if one)
        inside, self._inside, self._held = self._inside, None, []
        if not text:
            return
        if inside == "title":
            self.title = text[:MAX_TITLE_CHARS]
        elif inside is not None:
            heading, whole = text[:MAX_TITLE_CHARS], [(self._line, text)]
            is_long = len(text) > MAX_TITLE_CHARS
            self.sections.append(
                _Section(int(inside[1:]), heading, self._line, whole if is_long else [])
            )
        else:
            self.sections[-1].paragraphs.append((self._line, text))


_INVISIBLE = re.compile(r"<!--|<[!?]|<script\b|<style\b", re.IGNORECASE)
_ENDS = {"<!--": "-->", "<!": ">", "<?": ">", "<script": "</script", "<style": "</style"}
_MAX_TAG_CHARS = 4_000


def _strip_markup(text: str) -> str:
    """The page without comments, scripts and unclosed tags; line numbers stay the same.

    One pass: Python's parser takes quadratic time if there are many of these.
    """
    ends = {name: re.compile(end, re.IGNORECASE) for name, end in _ENDS.items()}
    parts, at, absent = list[str](), 0, set[str]()
    while start := _INVISIBLE.search(text, at):
        name = start[0].lower()
        end = None if name in absent else ends[name].search(text, start.end())
        parts.append(text[at : start.start()])
        if end is None:
            absent.add(name)
            at = start.end()
            continue
        at = end.start() if name in ("<script", "<style") else end.end()
        parts.append("\n" * text.count("\n", start.start(), at))
    return _escape_open_tags("".join([*parts, text[at:]]))


def _escape_open_tags(text: str) -> str:
    """The text with "&lt;" for each "<" that has no ">" soon after."""
    first, *pieces = text.split("<")
    parts, at, end = [first], len(first), -1
    for piece in pieces:
        if end < at:
            end = text.find(">", at)
            end = len(text) + _MAX_TAG_CHARS if end < 0 else end
        parts += ["<" if end - at < _MAX_TAG_CHARS else "&lt;", piece]
        at += 1 + len(piece)
    return "".join(parts)


def _load_html(file: Path, bad: BadRecords) -> Iterator[_Passage]:
    parser = _HtmlSections()
    parser.feed(_strip_markup(read_text(file)))
    parser.close()
    parser.flush()
    return _section_passages(parser.sections, parser.title or _name(file))


# ---- tables


def _load_table(file: Path, bad: BadRecords) -> Iterator[_Passage]:
    text = read_text(file)
    head = text.lstrip("\n").partition("\n")[0]
    delimiter = "\t" if file.suffix.lower() == ".tsv" else max(",;\t|", key=head.count)
    header: list[str] = []
    for line, row in _table_rows(text, delimiter, file, bad):
        if not any(cell.strip() for cell in row):
            continue
        if not header:
            header = [_one_line(cell) or f"column {at}" for at, cell in enumerate(row, start=1)]
            titles = [name.casefold() for name in header]
            at = next((titles.index(one) for one in ("title", "name") if one in titles), 0)
        elif len(row) > len(header):
            problem = f"the row has {len(row)} cells, expected {len(header)}"
            bad.reject(f"{file}:{line}", problem)
        else:
            cells = [f"{name}: {cell.strip()}" for name, cell in zip(header, row) if cell.strip()]
            title = _one_line(row[at]) if at < len(row) else ""
            heading = HEADING_SEPARATOR.join(filter(None, (_name(file), title)))
            yield _Passage(
                "\n".join(cells), title or _name(file), {"line": line, "heading": heading}
            )


def _table_rows(
    text: str, delimiter: str, file: Path, bad: BadRecords
) -> Iterator[tuple[int, list[str]]]:
    """Each row with its line. A quote that is not closed costs its own line, not those below."""
    lines, start = io.StringIO(text).readlines(), 0
    rows = csv.reader(lines, delimiter=delimiter)
    while True:
        line = start + rows.line_num
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            bad.reject(f"{file}:{line + 1}", f"not a row of a table: {error}; is a quote open?")
            continue
        end = start + rows.line_num
        if end > line + 1 and not _is_well_quoted(lines[line:end], delimiter):
            bad.reject(f"{file}:{line + 1}", "a quote in this row is not closed")
            start = line + 1
            rest = map(lines.__getitem__, range(start, len(lines)))  # a slice would copy each time
            rows = csv.reader(rest, delimiter=delimiter)
            continue
        yield line + 1, row


def _is_well_quoted(lines: Sequence[str], delimiter: str) -> bool:
    try:
        return bool(list(csv.reader(lines, delimiter=delimiter, strict=True)))
    except csv.Error:
        return False


# ---- JSON and chats


@dataclass(frozen=True, slots=True)
class _Message:
    text: str
    line: int
    day: date | None = None


def _chat_passages(messages: Iterable[_Message], title: str) -> Iterator[_Passage]:
    """Join neighbouring messages of the same day into passages of up to MAX_CHARS."""
    day, held = None, list[tuple[int, str]]()

    def passages() -> Iterator[_Passage]:
        for line, text in _pack(held, glue="\n"):
            place = {"line": line, "heading": title}
            yield _Passage(text, title, place, published_at=day)

    for one in messages:
        if one.day != day:
            yield from passages()
            day, held = one.day, []
        held.append((one.line, one.text))
    yield from passages()


_WHATSAPP = re.compile(
    r"\u200e?\[?(?P<day>\d{1,4}[./-]\d{1,2}[./-]\d{1,4}),?[ \u202f](?P<time>\d{1,2}[:.]\d{2}"
    r"(?:[:.]\d{2})?(?:[ \u202f]?[APap]\.?[ ]?[Mm]\.?)?)\]?(?: [-–])? (?P<rest>.*)"
)


def _whatsapp_messages(text: str) -> list[_Message] | None:
    """The messages of an exported chat; None if the text is not one."""
    lines = text.split("\n")
    first = [line for line in lines[:50] if line.strip()][:10]
    starts = [_WHATSAPP.fullmatch(line) for line in first]
    if not starts or starts[0] is None or not any(one and ": " in one["rest"] for one in starts):
        return None
    found: list[tuple[int, list[str]]] = []  # the first line's number, and the lines
    days: list[str] = []
    for number, line in enumerate(lines, start=1):
        if start := _WHATSAPP.fullmatch(line):
            if ": " not in start["rest"]:
                continue  # "Ana joined", "messages are encrypted"
            days.append(start["day"])
            found.append((number, [f"{start['day']} {start['time']} {start['rest']}"]))
        elif found and line.strip():
            found[-1][1].append(line)
    dated = zip(found, _parse_days(days), strict=True)
    return [_Message("\n".join(said), number, day) for (number, said), day in dated]


def _parse_days(days: list[str]) -> list[date | None]:
    """The dates; None for all if day and month cannot be told apart."""
    parts = [tuple(int(part) for part in re.split(r"[./-]", day)) for day in days]
    orders = [(0, 1, 2)] if days and parts[0][0] > 99 else [(2, 1, 0), (2, 0, 1)]
    possible: list[list[date | None]] = []
    for year, month, day in orders:
        try:
            possible.append(
                [date(one[year] + 2000 * (one[year] < 100), one[month], one[day]) for one in parts]
            )
        except ValueError:
            continue
    return possible[0] if len(possible) == 1 else [None] * len(days)


def _is_message(value: Any) -> bool:
    """Whether this is a message: Slack's (`ts`, `text`) or a chat model's (`role`, `content`)."""
    return isinstance(value, dict) and any(
        names <= value.keys() for names in ({"ts", "text"}, {"role", "content"})
    )


def _message(value: dict[str, Any], line: int) -> _Message | None:
    text = value.get("content") if "role" in value else value.get("text")
    if isinstance(text, list):  # parts, some of which may be images
        parts = (part.get("text") if isinstance(part, dict) else part for part in text)
        text = "\n".join(part for part in parts if isinstance(part, str))
    if not isinstance(text, str) or not text.strip():
        return None
    profile = value.get("user_profile")
    names = [profile.get("real_name")] if isinstance(profile, dict) else []
    names += [value.get(name) for name in ("role", "user_name", "username", "user")]
    who = next((one for one in names if isinstance(one, str) and one), "")
    when = _parse_ts(value.get("ts"))
    head = " ".join(filter(None, (f"{when:%Y-%m-%d %H:%M}" if when else "", who)))
    day = when.date() if when else None
    return _Message(f"{head}: {text.strip()}" if head else text.strip(), line, day)


def _parse_ts(value: Any) -> datetime | None:
    try:
        return datetime.fromtimestamp(float(value), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def _record_passages(
    records: Iterable[tuple[Any, int]], file: Path, bad: BadRecords
) -> Iterator[_Passage]:
    """Objects with their line (or number) as documents, and consecutive messages as chats."""
    title = _name(file)
    if re.fullmatch(r"\d{4} \d{2} \d{2}", title):  # Slack: a folder per channel, a file per day
        title = f"{file.parent.name} {title.replace(' ', '-')}"
    chat: list[_Message] = []
    for value, line in records:
        if _is_message(value):
            if (message := _message(value, line)) is not None:
                chat.append(message)
            continue
        yield from _chat_passages(chat, title)
        chat = []
        inside = value.get("messages") if isinstance(value, dict) else None
        if isinstance(inside, list):
            messages = (_message(one, line) for one in inside if _is_message(one))
            named = next((value[one] for one in ("title", "name") if value.get(one)), title)
            yield from _chat_passages(filter(None, messages), _one_line(str(named)))
            continue
        try:
            yield from _object_passages(value, line)
        except InputError as error:
            bad.reject(f"{file}:{line}", str(error).removeprefix("document 1 ").strip())
    yield from _chat_passages(chat, title)


def _object_passages(value: Any, line: int) -> Iterator[_Passage]:
    (document,) = normalize_documents([value])
    if not document.text.strip():
        raise InputError("has no text")
    if document.doc_id == content_id(document.title, document.text):
        document = replace(document, doc_id="")  # it has no id of its own: the file provides one
    if not is_text(document.doc_id):
        raise InputError(f"document id {document.doc_id!r} contains a lone surrogate")
    place = {"line": line, "heading": document.title}
    yield _Passage(document.text, document.title, place, known=document)


def _load_json(file: Path, bad: BadRecords) -> Iterator[_Passage]:
    try:
        value = json.loads(read_text(file))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file} is not valid JSON: {error}") from error
    values = value if isinstance(value, list) else [value]
    numbered = ((one, at) for at, one in enumerate(values, start=1))
    for one in _record_passages(numbered, file, bad):
        place = {"item": one.place["line"], "heading": one.place["heading"]}
        yield replace(one, place=place)


def _load_jsonl(file: Path, bad: BadRecords) -> Iterator[_Passage]:
    if not file.stat().st_size:
        raise InputError(f"{file} is empty")
    records = ((one.value, int(one.where.rpartition(":")[2])) for one in read_jsonl(file, bad))
    return _record_passages(records, file, bad)


# ---- PDF


def _import_pypdf() -> Any:
    try:
        import pypdf
    except ImportError:
        raise MissingExtraError("reading a .pdf", extra="pdf") from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # its repairs do not concern users
    return pypdf


def _load_pdf(file: Path, bad: BadRecords) -> Iterator[_Passage]:
    pypdf = _import_pypdf()
    if not file.stat().st_size:
        raise InputError(f"{file} is empty")
    try:
        pdf = pypdf.PdfReader(file)
        if pdf.is_encrypted and not pdf.decrypt(""):
            raise InputError(f"{file} needs a password")
        pages, named = list(pdf.pages), pdf.metadata.title if pdf.metadata else None
    except InputError:
        raise
    except Exception as error:  # a damaged file can raise anything
        raise InputError(f"{file} is not a readable PDF: {error}") from error
    title, found = _one_line(str(named or "")) or _name(file), False
    for number, page in enumerate(pages, start=1):
        try:
            text = _page_text(page, number)
        except InputError as error:
            bad.reject(str(file), str(error))
            continue
        for _, part in _pack(_paragraphs(text)):
            found = True
            yield _Passage(part, title, {"page": number, "heading": title})
    if not found:
        raise InputError(f"{file} has no text: if its pages are pictures, run OCR on it first")


def _page_text(page: Any, number: int) -> str:
    try:
        text = str(page.extract_text())
    except Exception as error:  # a damaged page can also raise anything
        raise InputError(f"page {number} cannot be read: {error}") from error
    return text if is_text(text) else text.encode("utf-8", "replace").decode()


LOADERS: dict[str, Callable[[Path, BadRecords], Iterator[_Passage]]] = {
    ".md": _load_markdown,
    ".markdown": _load_markdown,
    ".txt": _load_text,
    ".html": _load_html,
    ".htm": _load_html,
    ".csv": _load_table,
    ".tsv": _load_table,
    ".json": _load_json,
    ".jsonl": _load_jsonl,
    ".pdf": _load_pdf,
}
