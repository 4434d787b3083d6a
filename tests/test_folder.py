"""Folders as people keep them: every file becomes documents that lead back, or is listed."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.datasets import load
from suffice.datasets.folder import LOADERS, MAX_CHARS, Folder
from suffice.errors import InputError, MissingExtraError
from suffice.library import Library
from suffice.storage import BadRecords
from suffice.types import Document

POLICY = """---
title: "Leave policy"
---
Valid from May.

# Handbook

## Leave

### Sick *leave*

Tell your manager by 10:00.

```
# not a heading
```

Parental leave
--------------
Sixteen weeks.
"""
PAGE = """<html><head><title>Office</title><style>p {}</style></head>
<body><nav>Home</nav>
<h1>Office</h1>
<p>Open <b>daily</b> &amp; late.</p><script>let x = "<p>no</p>"</script>
<h2>Parking</h2>
<table><tr><th>Day</th><th>Level</th></tr><tr><td>Monday</td><td>2</td></tr></table>
</body></html>"""


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def read(path: Path, **options: Any) -> tuple[list[Document], list[str]]:
    bad = BadRecords(skip=True)
    return list(Folder(path, **options).documents(bad)), bad.examples


def read_one(tmp_path: Path, name: str, content: str | bytes) -> list[Document]:
    documents, skipped = read(write(tmp_path / "home", {name: content}))
    assert skipped == []
    return documents


def shown(documents: list[Document]) -> list[tuple[str, str]]:
    return [(one.title, one.text) for one in documents]


def places(documents: list[Document]) -> list[tuple[str, int]]:
    return [(one.extra["heading"], one.extra["line"]) for one in documents]


# ---- sections


def test_headings_become_titles_and_documents_lead_back(tmp_path: Path) -> None:
    documents = read_one(tmp_path, "rules/policy.md", POLICY)
    assert shown(documents) == [
        ("Leave policy", "Valid from May."),
        ("Sick leave", "Tell your manager by 10:00.\n\n```\n# not a heading\n```"),
        ("Parental leave", "Sixteen weeks."),
    ]
    assert places(documents) == [
        ("Leave policy", 4),
        ("Handbook > Leave > Sick leave", 12),
        ("Handbook > Parental leave", 20),
    ]
    assert documents[1].doc_id == "home/rules/policy.md#2"
    assert (documents[1].extra["folder"], documents[1].extra["path"]) == ("home", "rules/policy.md")


def test_a_heading_without_text_is_kept_where_nothing_is_below_it(tmp_path: Path) -> None:
    documents = read_one(tmp_path, "a.md", "# Plans\n\n## To do\n\n## Done\n\nAll.\n")
    assert shown(documents) == [("To do", ""), ("Done", "All.")]


def test_a_heading_too_long_for_a_title_loses_nothing(tmp_path: Path) -> None:
    long = f"{'word ' * 60}end"
    for name, content in (("a.md", f"# {long}\n\nRest."), ("a.html", f"<h1>{long}</h1><p>Rest.")):
        (document,) = read_one(tmp_path / name, name, content)
        assert document.text.removeprefix("# ") == f"{long}\n\nRest."
        assert long.startswith(document.title)


def test_a_page_is_read_as_it_is_seen(tmp_path: Path) -> None:
    documents = read_one(tmp_path, "office.html", PAGE)
    assert shown(documents) == [
        ("Office", "Open daily & late."),
        ("Parking", "Day | Level\n\nMonday | 2"),
    ]
    assert places(documents) == [("Office", 4), ("Office > Parking", 6)]


def test_what_a_page_never_closes_hides_nothing(tmp_path: Path) -> None:
    page = "<!-- <p>no</p>\n--><SCRIPT>if (a<!b) x</Script><nav>Menu<h1>Open</h1><p>5 < 7 <!-- end"
    (document,) = read_one(tmp_path, "a.htm", page)
    assert (document.title, document.text, document.extra["line"]) == ("Open", "5 < 7 end", 2)
    hostile = ("<!-- >" * 20_000, "<p " * 20_000, "<" * 20_000, "<![CDATA[" * 20_000)
    for number, content in enumerate(hostile):
        read(write(tmp_path / str(number), {"a.html": content, "a.md": content}))


def test_long_texts_are_cut_between_paragraphs_and_nothing_is_lost(tmp_path: Path) -> None:
    paragraphs = [f"Paragraph {at} says {'little ' * 20}." for at in range(40)]
    endless = "x" * (3 * MAX_CHARS + 5)
    documents = read_one(tmp_path, "long.txt", "\n\n".join([*paragraphs, endless]))
    assert all(len(one.text) <= MAX_CHARS + 40 for one in documents)
    joined = "\n\n".join(one.text for one in documents)
    assert all(one in joined for one in paragraphs)
    assert joined.count("x") == len(endless)
    lines = [one.extra["line"] for one in documents]
    for one in documents[:-4]:
        number = int(one.text.split()[1])
        assert one.extra["line"] == 2 * number + 1
    assert lines == sorted(lines)


# ---- tables


def test_each_row_of_a_table_is_a_document(tmp_path: Path) -> None:
    table = 'city;Name;note\nPorto;Ana;"two\nlines"\nOslo;Ben;\n'
    documents = read_one(tmp_path, "people.csv", table)
    assert shown(documents) == [
        ("Ana", "city: Porto\nName: Ana\nnote: two\nlines"),
        ("Ben", "city: Oslo\nName: Ben"),
    ]
    assert places(documents) == [("people > Ana", 2), ("people > Ben", 4)]


def test_a_table_without_a_name_is_titled_by_its_first_column(tmp_path: Path) -> None:
    assert shown(read_one(tmp_path, "stock.tsv", "item\tleft\nlamp\t3\n")) == [
        ("lamp", "item: lamp\nleft: 3")
    ]


def test_a_bad_row_is_listed_and_the_others_are_read(tmp_path: Path) -> None:
    documents, skipped = read(write(tmp_path, {"a.csv": "a,b\n1,2\n1,2,3\n4,5\n"}))
    assert [one.title for one in documents] == ["1", "4"]
    assert skipped == [f"{tmp_path / 'a.csv'}:3: the row has 3 cells, expected 2"]


@pytest.mark.parametrize("open_row", ['2,"lamp', '2,a ""small"" one,"lamp'])
@pytest.mark.parametrize("last", ["plain", '5" wide', '"quoted"'])
def test_a_quote_that_is_not_closed_costs_one_row(open_row: str, last: str, tmp_path: Path) -> None:
    table = f'id,name,note\n1,"a\nsofa",\n{open_row}\n3,chair,""\n\n4,desk,{last}\n'
    documents, skipped = read(write(tmp_path, {"a.csv": table}))
    assert [one.title for one in documents] == ["a sofa", "chair", "desk"]
    assert [one.extra["line"] for one in documents] == [2, 5, 7]
    assert skipped == [f"{tmp_path / 'a.csv'}:4: a quote in this row is not closed"]


def test_an_open_quote_in_the_last_row_loses_nothing(tmp_path: Path) -> None:
    documents, skipped = read(write(tmp_path, {"a.csv": 'id,name\n1,"chair'}))
    assert ([one.title for one in documents], skipped) == (["chair"], [])


# ---- JSON and chats


def test_objects_are_documents_in_the_usual_shapes(tmp_path: Path) -> None:
    lines = '{"id": "k1", "title": "Kettle", "text": "1.7 litres.", "colour": "red"}\n{"content": "Green lamp."}\n'
    kettle, lamp = read_one(tmp_path, "things.jsonl", lines)
    assert (kettle.doc_id, kettle.title, kettle.extra["colour"]) == ("k1", "Kettle", "red")
    assert (lamp.doc_id, lamp.text, lamp.extra["line"]) == (
        "home/things.jsonl#2",
        "Green lamp.",
        2,
    )


def test_slack_messages_of_a_day_are_together(tmp_path: Path) -> None:
    messages = [
        {"user": "U1", "user_profile": {"real_name": "Ana"}, "ts": "1710252300.0002", "text": "Frozen."},
        {"user": "U2", "ts": "1710252360.0", "text": "Until when?"},
        {"user": "U1", "ts": "1710338760.0", "text": "Monday."},
        {"user": "U1", "ts": "1710338761.0", "text": ""},
    ]  # fmt: skip
    documents = read_one(tmp_path, "general/2024-03-12.json", json.dumps(messages))
    assert shown(documents) == [
        ("general 2024-03-12", "2024-03-12 14:05 Ana: Frozen.\n2024-03-12 14:06 U2: Until when?"),
        ("general 2024-03-12", "2024-03-13 14:06 U1: Monday."),
    ]
    assert [one.published_at for one in documents] == [date(2024, 3, 12), date(2024, 3, 13)]
    assert [one.extra["item"] for one in documents] == [1, 3]


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_conversation_with_a_model_is_a_chat(tmp_path: Path, wrapped: bool) -> None:
    messages = [
        {"role": "user", "content": "Who leads Atlas?"},
        {"role": "assistant", "content": [{"type": "text", "text": "Mara."}]},
        {"role": "assistant", "content": None},
    ]
    value = {"title": "bot", "messages": messages} if wrapped else messages
    (document,) = read_one(tmp_path, "bot.json", json.dumps(value))
    assert (document.title, document.text) == ("bot", "user: Who leads Atlas?\nassistant: Mara.")


def test_people_with_a_role_are_no_chat(tmp_path: Path) -> None:
    (document,) = read_one(tmp_path, "team.json", '[{"role": "engineer", "text": "Ana builds."}]')
    assert document.text == "Ana builds."


WHATSAPP = """12/03/2024, 14:05 - Messages are end-to-end encrypted.
12/03/2024, 14:05 - Ana: The office moves
to Porto.
{}, 09:00 - Ben: Which floor?
"""


@pytest.mark.parametrize(
    ("second", "days"),
    [
        ("13/03/2024", [date(2024, 3, 12), date(2024, 3, 13)]),
        ("12/13/2024", [date(2024, 12, 3), date(2024, 12, 13)]),
        ("12/04/2024", [None]),  # day or month?
    ],
)
def test_a_whatsapp_chat_is_dated_where_its_days_are_certain(
    tmp_path: Path, second: str, days: list[date | None]
) -> None:
    documents = read_one(tmp_path, "chat.txt", WHATSAPP.format(second))
    assert [one.published_at for one in documents] == days
    assert documents[0].text.startswith("12/03/2024 14:05 Ana: The office moves\nto Porto.")
    assert documents[0].extra["line"] == 2
    assert "encrypted" not in documents[0].text


# ---- PDF


def pdf(*pages: str) -> bytes:
    """A PDF of these pages, one line each."""
    kids = " ".join(f"{3 + 2 * at} 0 R" for at in range(len(pages)))
    font = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>",
    ]
    for at, text in enumerate(pages):
        drawn = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET"
        objects += [
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {4 + 2 * at} 0 R"
            f"/Resources<</Font<</F1 {font}>>>>>>",
            f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream",
        ]
    body, places = "%PDF-1.4\n", []
    for number, one in enumerate(objects, start=1):
        places.append(len(body))
        body += f"{number} 0 obj\n{one}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    body += f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer<</Size {size}/Root 1 0 R>>\n"
    return f"{body}startxref\n{body.index('xref')}\n%%EOF\n".encode()


def test_pages_of_a_pdf_lead_back(tmp_path: Path) -> None:
    pytest.importorskip("pypdf", reason="the extra pdf is not installed")
    files = {
        "guide_book.pdf": pdf("The pool opens at nine.", "Towels are free."),
        "bad.pdf": b"%PDF-1.4 no",
    }
    documents, skipped = read(write(tmp_path, files))
    assert shown(documents) == [
        ("guide book", "The pool opens at nine."),
        ("guide book", "Towels are free."),
    ]
    assert [one.extra["page"] for one in documents] == [1, 2]
    assert "bad.pdf: is not a readable PDF" in skipped[0]


def test_without_the_extra_a_pdf_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    write(tmp_path, {"guide.pdf": pdf("Pool."), "a.txt": "Notes."})
    with pytest.raises(MissingExtraError) as caught:
        read(tmp_path)
    assert caught.value.hint.startswith("pip install 'suffice[pdf]'")
    assert "--skip-bad" in caught.value.hint
    documents, skipped = read(tmp_path, skip_pdf=True)
    assert [one.text for one in documents] == ["Notes."]
    assert "pip install 'suffice[pdf]'" in skipped[0]


# ---- what cannot be read


def test_what_cannot_be_read_is_listed_with_its_reason(tmp_path: Path) -> None:
    home = write(
        tmp_path / "home",
        {
            "a.txt": "Good.",
            "b.txt": b"caf\xe9",
            "c.txt": b"\0\1\2",
            "d.md": "",
            "e.html": "<p> </p>",
            "f.json": '{"a": 1',
            "g.json": '{"private": true}',
            "h.jsonl": '{"text": "Fine."}\nno\n',
            "i.txt": "Ok".encode("utf-16"),
            ".hidden.txt": "secret",
            ".git/notes.txt": "secret",
            "picture.png": b"\x89PNG",
        },
    )
    (home / "loop").symlink_to(home)
    (home / "out.txt").symlink_to("/etc/hosts")
    (home / "again.txt").symlink_to(home / "a.txt")
    (home / "kept.txt").symlink_to(home / ".git" / "notes.txt")
    os.mkfifo(home / "pipe.txt")
    folder, bad = Folder(home), BadRecords(skip=True)
    assert [one.text for one in folder.documents(bad)] == ["Good.", "Fine.", "Ok"]
    reasons = dict(line.removeprefix(f"{home}/").split(": ", 1) for line in bad.examples)
    no_link = "a link out of the folder, to a hidden file, or a broken one, not followed"
    assert reasons == {
        "loop": "a link to a folder, not followed",
        "kept.txt": no_link,
        "out.txt": no_link,
        "pipe.txt": "not a regular file",
        "b.txt": "is not UTF-8 text, see line 1; save it as UTF-8",
        "c.txt": "is a binary file, expected text",
        "d.md": "is empty",
        "e.html": "has no text",
        "f.json": reasons["f.json"],
        "g.json:1": reasons["g.json:1"],
        "h.jsonl:2": reasons["h.jsonl:2"],
    }
    assert "not valid JSON" in reasons["f.json"]
    assert "without 'text'" in reasons["g.json:1"]
    assert dict(folder.ignored) == {".png": 1}


def test_a_huge_file_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.datasets.folder.MAX_FILE_BYTES", 2**20)
    _, skipped = read(write(tmp_path, {"a.txt": b"a" * (2**20 + 1)}))
    assert skipped == [f"{tmp_path / 'a.txt'}: has 1 MiB, more than 1 MiB; split it"]


def test_no_content_stops_a_folder(tmp_path: Path) -> None:
    odd = (b"\n", b"[" * 9000, b"---\n", b"<p", b'"', b"\xef\xbb\xbf", b"[1, null, [], {}]")
    suffixes = LOADERS.keys() - {".pdf"}
    files = {f"{at}{suffix}": one for at, one in enumerate(odd) for suffix in suffixes}
    documents, skipped = read(write(tmp_path, {**files, "z.txt": "Still read."}))
    assert documents[-1].text == "Still read."
    assert len({one.extra["path"] for one in documents}) + len(skipped) >= len(files)


def test_deep_folders_and_odd_names_are_read_or_listed(tmp_path: Path) -> None:
    write(tmp_path, {"d/" * 150 + "a.txt": "Far down."})
    (tmp_path / "caf\udce9").mkdir()  # in Latin-1
    (tmp_path / "caf\udce9" / "b.txt").write_text("Unnamed.", encoding="utf-8")
    (tmp_path / "caf\udce9" / "loop").symlink_to(tmp_path)
    (tmp_path / "itself.txt").symlink_to(tmp_path / "itself.txt")
    (tmp_path / "manifest.json").write_bytes(b"[" * 100)  # of someone else's
    most = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)  # folders may be deeper than Python recurses
    try:
        documents, skipped = read(tmp_path)
    finally:
        sys.setrecursionlimit(most)
    assert [one.text for one in documents] == ["Far down."]
    assert [line.removeprefix(f"{tmp_path}/").split(" ")[0] for line in skipped] == [
        "itself.txt:", "caf?/b.txt:", "caf?/loop:", "manifest.json:"
    ]  # fmt: skip
    "\n".join(skipped).encode()


def test_an_id_with_half_a_surrogate_pair_is_listed(tmp_path: Path) -> None:
    broken = '{"id": "a", "text": "Ants."}\n{"id": "b\\ud800", "text": "Bees."}\n'
    whole = '{"title": "\\ud800", "text": "It has no id of its own."}'
    home = write(tmp_path / "notes", {"a.jsonl": broken, "b.json": whole, "c.txt": "Cats."})
    result = CliRunner().invoke(app, ["build", str(home), "--out", str(tmp_path / "library")])
    assert result.exit_code == 0, result.output
    assert "a.jsonl:2: document id 'b\\ud800' contains a lone surrogate" in result.output
    with Library.open(tmp_path / "library") as library:
        ids = [one.doc_id for one in library.documents()]
    assert ids == ["a", "notes/b.json#1", "notes/c.txt#1"]


@pytest.mark.parametrize("given", [".", "../caf\udce9"])
def test_a_folder_or_file_whose_own_name_is_not_utf8(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = write(tmp_path / "caf\udce9", {"a.txt": "Ants."})
    monkeypatch.chdir(home)
    result = CliRunner().invoke(app, ["build", given, "--out", str(tmp_path / "library")])
    assert result.exit_code == 0, result.output
    with Library.open(tmp_path / "library") as library:
        assert [one.doc_id for one in library.documents()] == ["caf?/a.txt#1"]
    (tmp_path / "th\udce9.txt").write_text("Tea.")
    with pytest.raises(InputError, match=r"th[?]\.txt has a name that is not UTF-8"):
        Folder(tmp_path / "th\udce9.txt")


@pytest.mark.parametrize("json", [(), ("--json",)])
def test_a_library_needs_a_path_in_utf8(json: tuple[str, ...], tmp_path: Path) -> None:
    home = write(tmp_path / "home", {"a.txt": "Ants."})
    place = tmp_path / "caf\udce9"
    result = CliRunner().invoke(app, ["build", str(home), "--out", str(place), *json])
    assert result.exit_code == 2, result.output
    assert "is not a path in UTF-8" in result.output
    assert not place.exists()
    moved = Library.build(tmp_path / "library", ["Ants."]).path.rename(place)
    with pytest.raises(InputError, match="is not a path in UTF-8"):
        Library.open(moved)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    write(tmp_path, {"a/a.txt": "Ants."})
    os.mkfifo(tmp_path / "a" / "manifest.json")
    documents, bad = read(tmp_path)
    assert [one.text for one in documents] == ["Ants."]
    assert "manifest.json: not a regular file" in bad[0]


def test_an_id_is_kept_once_and_its_other_lines_are_named(tmp_path: Path) -> None:
    files = {
        "a.jsonl": '{"id": "x", "text": "First."}\n\n{"id": "x", "text": "Again."}',
        "b.json": '[{"id": "y", "text": "Ants."}, {"id": "x", "text": "Second."}]',
    }
    documents, skipped = read(write(tmp_path, files))
    assert [one.text for one in documents] == ["First.", "Ants."]
    again, second = skipped
    assert again.endswith("a.jsonl:3: document id 'x' is already used in a.jsonl:1")
    assert second.endswith("b.json:2: document id 'x' is already used in a.jsonl:1")


# ---- building a library of a folder, and again


def build(*arguments: object) -> dict[str, Any]:
    words = ["build", *map(str, arguments), "--encoder", "none", "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    record: dict[str, Any] = json.loads(result.stdout)
    return record


def counts(record: dict[str, Any]) -> tuple[int, ...]:
    return tuple(record["library"][one] for one in ("added", "replaced", "removed", "unchanged"))


def test_building_again_updates_what_changed(tmp_path: Path) -> None:
    home, library = tmp_path / "home", tmp_path / "library"
    write(
        home,
        {"a.md": "# A\n\nOne.\n\n# B\n\nTwo.", "b.txt": "Bees.", "c.txt": "Cats.", "d.txt": b"\0"},
    )
    record = build(home, "--out", library)
    assert (record["files"], record["skipped"], counts(record)) == (3, 1, (4, 0, 0, 0))
    assert counts(build(home, "--out", library)) == (0, 0, 0, 4)
    with Library.open(library) as lib:
        lib.add([Document("mine", "Added by hand.")])
    write(home, {"a.md": "# A\n\nOne, changed.", "b.txt": b"\xff", "e.txt": "Eels."})
    (home / "c.txt").unlink()
    record = build(home, "--out", library)
    assert counts(record) == (1, 1, 2, 0)
    with Library.open(library) as lib:
        texts = sorted(one.text for one in lib.documents())
    # A file that cannot be read today keeps what was read of it before.
    assert texts == ["Added by hand.", "Bees.", "Eels.", "One, changed."]


def test_a_crash_between_adding_and_removing_is_mended_by_the_next_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, library = tmp_path / "home", tmp_path / "library"
    build(write(home, {"a.txt": "Ants.", "b.txt": "Bees."}), "--out", library)
    (home / "b.txt").rename(home / "c.txt")

    def crash(*_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Library, "delete", crash)
        CliRunner().invoke(app, ["build", str(home), "--out", str(library), "--encoder", "none"])
    with pytest.warns(UserWarning, match="was cut off"), Library.open(library) as lib:
        assert len(lib) == 3
    assert counts(build(home, "--out", library)) == (0, 0, 1, 2)
    Library.open(library).close()  # no warning


def test_a_folder_that_cannot_be_listed_keeps_its_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, library = tmp_path / "home", tmp_path / "library"
    write(
        home, {"a.txt": "Ants.", "b/b.txt": "Bees.", "b/c/c.txt": "Cicadas.", "bb/d.txt": "Dogs."}
    )
    assert counts(build(home, "--out", library)) == (4, 0, 0, 0)
    scandir = os.scandir

    def refuse(path: Any) -> Any:
        if path == home / "b":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    (home / "bb" / "d.txt").unlink()
    assert counts(build(home, "--out", library)) == (0, 0, 1, 1)
    with Library.open(library) as lib:
        assert sorted(one.text for one in lib.documents()) == ["Ants.", "Bees.", "Cicadas."]


def test_two_folders_share_a_library_and_leave_each_other_alone(tmp_path: Path) -> None:
    library = tmp_path / "library"
    build(write(tmp_path / "one", {"a.txt": "Ants."}), "--out", library)
    assert counts(build(write(tmp_path / "two", {"a.txt": "Bees."}), "--out", library))[:3] == (
        1,
        0,
        0,
    )
    other = write(tmp_path / "elsewhere" / "one", {"z.txt": "Zebras."})
    result = CliRunner().invoke(
        app, ["build", str(other), "--out", str(library), "--encoder", "none"]
    )
    assert result.exit_code == 2
    assert "has a folder 'one' already" in result.output
    with Library.open(library) as lib:
        assert len(lib) == 2


def test_a_library_inside_its_folder_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "Ants."})
    build(tmp_path, "--out", tmp_path / "library")
    assert counts(build(tmp_path, "--out", tmp_path / "library")) == (0, 0, 0, 1)
    with pytest.raises(InputError, match="suffice made"):
        Folder(tmp_path / "library")


def test_a_folder_with_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "home", {"c.png": b"x"})
    result = CliRunner().invoke(app, ["build", str(tmp_path / "home")])
    assert result.exit_code == 2
    assert "home has no file that suffice can read: 1 .png" in result.output.replace("\n", "")


def test_a_folder_of_our_own_format_is_read_as_such(tmp_path: Path) -> None:
    write(
        tmp_path / "home", {"documents.jsonl": '{"doc_id": "a", "text": "Ants."}', "b.txt": "Bees."}
    )
    assert build(tmp_path / "home")["name"] == "jsonl"
    assert build(tmp_path / "home", "--dataset", "folder")["name"] == "home"
    assert build(tmp_path / "home" / "b.txt")["documents"] == 1


def test_questions_about_a_folder_come_from_their_own_file(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("Refunds take ten days.", encoding="utf-8")
    lines = '{"question": "How long?", "gold": ["docs/a.txt#1"]}\n{"question": "No gold?"}\n'
    (tmp_path / "asked.jsonl").write_text(lines, encoding="utf-8")
    data = load("folder", tmp_path / "docs", questions=tmp_path / "asked.jsonl")
    with pytest.raises(InputError, match=r"asked.jsonl:2: field 'gold' is missing"):
        list(data.questions())
    data = load("folder", tmp_path / "docs", questions=tmp_path / "asked.jsonl", skip_bad=True)
    (asked,) = data.questions()
    assert asked.gold.doc_ids == {one.doc_id for one in data.documents()}
    assert data.bad.count == 1
    with pytest.raises(InputError, match="a folder has one path"):
        load("folder", tmp_path / "docs", corpus=tmp_path / "asked.jsonl")
