"""The page at `/` in a real browser: each flow by mouse or by keys, what goes wrong, what is empty,
large type, a phone.

The pictures of the docs are made on the way with SUFFICE_PICTURES=docs/images, as they are committed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="pip install 'suffice[serve]'")
pytest.importorskip("playwright", reason="pip install playwright")

import uvicorn
from playwright import sync_api as playwright
from tests.service import build_film_library
from tests.small_world import COMPARISON

from suffice.evaluation.gate_runs import GateRun
from suffice.service.app import create_app
from suffice.service.keys import ApiKeys
from suffice.service.settings import Settings

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
# Not live without a browser: CI must not fail for want of a Debian package that it may be unable to
# install.
pytestmark = (
    pytest.mark.live
    if BROWSER
    else pytest.mark.skip(reason="no chromium here: apt-get install chromium")
)

PICTURES, PICTURE_HEIGHT = os.environ.get("SUFFICE_PICTURES"), 1600
LABEL_QUESTIONS = (
    "When did the director of the film Dog Law die?",
    "Who is <b>Ada</b>, and <img src=x onerror='document.title=1'>?",
    "Which film has the director born first, Shadows in Paradise or Dog Law?",
    "How long does leek soup keep in a fridge?",
    "Is bread sold in the village on Sundays?",
)
LABEL_HITS = [
    {"id": "dog", "title": "Dog Law", "text": "Dog Law is a 1928 film directed by Jerome Storm."},
    {
        "id": "storm",
        "title": "Jerome Storm",
        "text": "Jerome Storm (1890 – 1958) made films. " + "He began as an actor in 1914. " * 20,
    },
    {"id": "bad", "title": "<i>Soup</i>", "text": "<script>document.title=2</script> of leeks"},
]
Open = Callable[..., Any]
expect = playwright.expect
expect.set_options(timeout=30_000)  # a busy machine is no fault of the page


@contextmanager
def serving(settings: Settings) -> Iterator[str]:
    """The service on a free port of this machine, in a thread; its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        create_app(settings),
        ws="none",
        proxy_headers=False,
        log_level="critical",
    )
    server = uvicorn.Server(config)
    running = threading.Thread(target=server.run, args=([listening],))
    running.start()
    while not server.started:
        assert running.is_alive()
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    finally:
        server.should_exit = True
        running.join(30)
        listening.close()


def gate_run() -> GateRun:
    """A gate that is right on average, on questions of three kinds."""
    rng, n = np.random.default_rng(5), 600
    p = rng.beta(0.6, 0.6, n)
    complete = rng.random(n) < p
    return GateRun(
        "village",
        "bm25",
        10,
        "default",
        tuple(f"q{at}" for at in range(n)),
        tuple(("bridge", "comparison", "compositional")[at % 3] for at in range(n)),
        tuple(2 + at % 2 for at in range(n)),
        tuple(complete.tolist()),
        tuple(p.tolist()),
        tuple("answer" if one >= 0.7 else "expand" if one > 0.3 else "abstain" for one in p),
        "Answers from p_complete 0.700 on (chosen by hand).",
    )


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A file of keys, and a token that may read and label."""
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    return str(path), ApiKeys(path).create("page", ("read", "label"))[0]


def questions_to_label(folder: Path, questions: Sequence[str], hits: Sequence[Any]) -> str:
    """A file of questions, each with the same hits."""
    lines = [json.dumps({"question": one, "hits": hits}) for one in questions]
    (folder / "questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return str(folder / "questions.jsonl")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, token: tuple[str, str]) -> Iterator[str]:
    """A service with films, a run, questions to label and keys."""
    place = tmp_path_factory.mktemp("page")
    run, library = gate_run().save(place / "run.json"), build_film_library(place / "cinema")
    label = questions_to_label(place, LABEL_QUESTIONS[:3:2], LABEL_HITS[:2])
    with serving(Settings(library=library, report=str(run), label=label, keys=token[0])) as at:
        yield at


@pytest.fixture(scope="module")
def bare() -> Iterator[str]:
    """A service with a gate and nothing else."""
    with serving(Settings()) as at:
        yield at


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"]
        )
        yield running
        running.close()


@pytest.fixture
def labels(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A service with questions to label, and its file of labels."""
    with serving(
        Settings(label=questions_to_label(tmp_path, LABEL_QUESTIONS, LABEL_HITS), preset="fast")
    ) as at:
        yield at, tmp_path / "labels.jsonl"


@pytest.fixture
def visit(browser: Any, address: str, token: tuple[str, str]) -> Iterator[Open]:
    """Open a view.

    Whatever the browser complains about, our own policy for scripts included, fails the test.
    """
    complaints: list[str] = []
    contexts = []

    def opened(view: str = "check", at: str = "", key: bool = True, **how: Any) -> Any:
        context = browser.new_context(
            reduced_motion="reduce", **{"viewport": {"width": 1000, "height": 900}, **how}
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda response: complaints.append(response.text) if response.type == "error" else None,
        )
        if key:
            page.add_init_script(f"sessionStorage.setItem('suffice-key', '{token[1]}')")
        page.goto((at or address) + f"#{view}", wait_until="networkidle")
        return page

    yield opened
    for context in contexts:
        context.close()
    refused = "Failed to load resource"  # a status that we meant; the page tells what it was
    assert [one for one in complaints if refused not in one] == []


def picture(page: Any, name: str, *, width: int = 760, top: str = "body") -> None:
    """The page from this element on, as the docs show it."""
    if not PICTURES:
        return
    before = page.viewport_size
    page.set_viewport_size({"width": width, "height": 900})
    box = page.locator(top).first.bounding_box()
    whole, above = page.evaluate("[document.documentElement.scrollHeight, scrollY]")
    y = max(box["y"] + above - 24, 0)
    size = {"width": width, "height": min(PICTURE_HEIGHT, whole - y)}
    path = str(Path(PICTURES) / f"page-{name}.png")
    page.screenshot(path=path, full_page=True, clip={"x": 0, "y": y, **size})
    from PIL import Image  # late: only here; 64 colours are enough, and a fourth of the size

    Image.open(path).quantize(64).save(path, optimize=True)
    page.set_viewport_size(before)


def checked(page: Any, question: str, hits: str) -> None:
    page.get_by_label("Question").first.fill(question)
    page.get_by_label("Hits, best first").fill(hits)
    page.get_by_role("button", name="Check", exact=True).click()


# ---- check


def test_a_gap_is_seen_and_expanding_closes_it(visit: Open) -> None:
    page = visit()
    page.get_by_role("button", name="Fill in an example").click()
    page.get_by_role("button", name="Check", exact=True).click()
    gauge = page.get_by_role("img", name=re.compile("Complete with probability"))
    expect(gauge).to_be_visible()
    low = share(gauge)
    expect(page.get_by_role("heading", name="Abstain")).to_be_visible()
    assert page.locator(".marked mark").all_text_contents() == [
        "Shadows in Paradise (covered)",
        "Dog Law (covered)",
    ]
    expect(page.locator(".chips.abstain")).to_have_text("Aki Kaurismäki")
    assert page.locator(".evidence-graph .gap").count() == 1
    page.get_by_text("The same in words").click()
    expect(page.get_by_text("“Dog Law” mentions “Jerome Storm”.")).to_be_visible()
    expect(
        page.get_by_text("“Shadows in Paradise” mentions Aki Kaurismäki, which no hit covers.")
    ).to_be_visible()
    assert page.locator(".bars li").count() >= 2
    picture(page, "check")

    page.get_by_role("button", name="Expand from the library").click()
    expect(page.get_by_role("status").first).to_contain_text("Ended: the gate says answer")
    expect(page.get_by_role("heading", name="Answer", exact=True)).to_be_visible()
    assert share(gauge) > low
    steps = page.locator(".rounds li")
    assert steps.count() >= 3
    assert "+ Aki Kaurismäki" in " ".join(steps.all_inner_texts())
    expect(page.locator(".hits")).to_contain_text("Aki Kaurismäki (born 4 April 1957)")
    picture(page, "expand", top=".verdict")


def share(gauge: Any) -> int:
    label = re.search(r"probability (\d+) %", gauge.get_attribute("aria-label"))
    assert label is not None
    return int(label[1])


def test_hits_come_from_the_library_and_what_is_missing_is_underlined(visit: Open) -> None:
    page = visit()
    question = "Did Jerome Storm or Clarence Brown direct Metropolis in 1927?"
    page.get_by_label("Question").first.fill(question)
    page.get_by_role("button", name="Find hits in the library").click()
    expect(page.locator(".hits h3").first).to_contain_text("Jerome Storm")
    assert page.locator(".marked mark").all_text_contents() == ["Jerome Storm (covered)"]
    assert page.locator(".marked .lacking").all_text_contents() == [
        "Clarence Brown (in no hit)",
        "Metropolis (in no hit)",
        "1927 (in no hit)",
    ]
    before = page.locator(".hits > li").count()
    page.locator("button.chip").first.click()  # what the gate would look for next
    expect(page.get_by_role("status").first).to_contain_text("added")
    assert page.locator(".hits > li").count() >= before


def test_what_documents_say_stays_text(visit: Open) -> None:
    page = visit()
    bad = '<img src=x onerror="document.title=1"> | <script>document.title=2</script> of Ada'
    checked(page, "Who is <b>Ada</b> & <img src=x>?", bad)
    expect(page.locator(".hits")).to_contain_text("<script>document.title=2</script>")
    assert page.locator("#check-result img, #check-result script, #check-result b").count() == 0
    assert page.title() == "Check · suffice"


def test_what_cannot_be_checked_is_said(visit: Open) -> None:
    page = visit()
    for question, hits, says in (
        ("", "", "There is no question yet."),
        ("Who?", '[{"text": "a"', "line 1 is broken"),
        ("Who?", "[3]", "Hit 1 is neither a text nor an object."),
        ("Who?", '[{"doc_id": "a", "text": 3}]', "hits[0]"),
    ):
        checked(page, question, hits)
        expect(page.get_by_role("alert").first).to_contain_text(says)
    checked(page, "Who taught Ada?", "")  # no hits are no mistake
    expect(page.get_by_text("There are no hits for this question.")).to_be_visible()
    expect(page.get_by_role("alert").first).to_be_empty()
    page.route("**/v1/check", lambda route: route.abort())
    checked(page, "Who taught Ada?", "Ada was taught by Mary.")
    expect(page.get_by_role("alert").first).to_contain_text("The service cannot be reached.")


def test_a_key_is_asked_for_once(visit: Open, token: tuple[str, str]) -> None:
    page = visit(key=False)
    dialog = page.get_by_role("dialog", name="A key is required")
    expect(dialog).to_be_visible()
    dialog.get_by_label("Key", exact=True).fill(token[1])
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    checked(page, "Who taught Ada?", "Ada was taught by Mary.")
    expect(page.locator(".verdict")).to_be_visible()


# ---- ask


def test_a_plan_fills_in_and_citations_lead_to_their_sentence(visit: Open) -> None:
    page = visit("ask")
    page.get_by_label("Question").last.fill(COMPARISON)
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_role("heading", name="Dog Law", exact=True).first).to_be_visible()
    expect(page.locator("#plan > li.done")).to_have_count(6)  # five steps, and the gate's own look
    assert page.locator("#plan > li").nth(4).inner_text().startswith("5. Which one is it")
    cited = page.locator("#plan").get_by_role("link", name="Aki Kaurismäki · sentence 1").first
    cited.focus()
    page.keyboard.press("Enter")
    expect(page.locator("mark:focus")).to_contain_text("Aki Kaurismäki (born 4 April 1957)")
    assert page.url.endswith("#ask")
    picture(page, "ask")


def test_it_abstains_and_says_for_want_of_what(visit: Open) -> None:
    page = visit("ask")
    page.get_by_label("Question").last.fill("When did the director of the film Leek Soup die?")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("#ask-result .verdict.abstain")).to_contain_text("Leek Soup")
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    page.route("**/v1/ask", lambda route: None)  # one that never begins
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#ask-status")).to_have_text("Stopped.")


# ---- label


def test_keys_label_and_undo_and_a_reload_goes_on(visit: Open, labels: tuple[str, Path]) -> None:
    page = visit("label", labels[0], key=False)
    question, status = page.locator("#label-question"), page.locator("#label-status")
    seen = []
    for key, says in (
        ("y", "Stored: complete."),
        ("n", "Stored: not complete."),
        ("s", "Skipped."),
    ):
        expect(question).to_be_visible()
        seen.append(question.inner_text())
        if key == "n":
            page.keyboard.press("2")
            expect(page.get_by_role("button", name="Hit 2 is needed")).to_have_attribute(
                "aria-pressed", "true"
            )
        page.keyboard.press(key)
        expect(status).to_have_text(says)
        expect(question).not_to_have_text(seen[-1])
    expect(page.locator("#label-count")).to_have_text(
        "2 labelled (1 complete) · 1 skipped · 2 left · 18 more to adapt the gate"
    )
    page.keyboard.press("u")
    expect(status).to_have_text("Undone.")
    expect(question).to_have_text(seen[2])
    page.reload(wait_until="networkidle")
    expect(question).to_have_text(seen[2])
    expect(page.locator("#label-count")).to_contain_text("2 labelled (1 complete) · 3 left")
    page.get_by_label("Your name").focus()
    page.keyboard.type("nys")  # letters in a field are no answers
    page.keyboard.press("Tab")
    expect(question).not_to_have_text(seen[2])  # which waits for the name before
    page.get_by_role("button", name="Complete", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#label-count")).to_contain_text("3 labelled (2 complete)")
    assert page.locator("#label-item").locator("img, script, b, i").count() == 0
    assert page.title() == "Label · suffice"
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360

    rows = [json.loads(line) for line in labels[1].read_text(encoding="utf-8").splitlines()]
    assert [row.get("complete", "undo") for row in rows] == [True, False, None, "undo", True]
    assert [row["question"] for row in rows] == [*seen, seen[2], rows[4]["question"]]
    assert rows[1]["needed"] == {"dog": False, "storm": True, "bad": False}
    assert [hit["text"] for hit in rows[0]["hits"]] == [hit["text"] for hit in LABEL_HITS]
    assert len({row["by"] for row in rows[:4]}) == 1
    assert rows[4]["by"].endswith("nys")


# ---- report


def test_the_threshold_moves_by_pointer_and_by_keys(visit: Open) -> None:
    page = visit("report")
    slider = page.get_by_role("slider", name="Answer from")
    at = page.locator("#threshold-at")
    expect(at).to_have_text("0.70")
    expect(page.locator("#promise")).to_contain_text(
        "Guarantee: of the answered questions, at most"
    )
    picture(page, "report")
    slider.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(at).to_have_text("0.72")
    expect(page.locator(".counts")).to_contain_text("no longer answered")
    chart = page.locator(".chart .hold")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 40, steps=4)
    page.mouse.up()
    assert 65 <= int(page.locator(".counts dd").first.inner_text().split()[0]) <= 75
    page.mouse.click(box["x"] + box["width"] * 0.99, box["y"] + 40)
    assert float(at.inner_text()) < 0.1
    assert int(page.locator(".counts dd").first.inner_text().split()[0]) > 90
    assert page.locator(".heat td.deep").count() == 6


def test_drift_is_shown_where_it_was_seen(visit: Open) -> None:
    drift = {
        "gate": "default",
        "questions": 40,
        "words": "The questions have moved: recalibrate.",
        "recalibrate": True,
        "features": [{"feature": "content", "psi": 0.61, "ks": 0.3}],
        "actions_then": {"answer": 0.5},
        "actions_now": {"answer": 0.2},
    }
    page = visit("check")
    envelope = {
        "ok": True,
        "data": {"run": None, "drift": [drift]},
        "error": None,
        "request_id": "1",
    }
    page.route("**/v1/report", lambda route: route.fulfill(json=envelope))
    page.get_by_role("link", name="Report").click()
    expect(page.get_by_text("The questions have moved: recalibrate.")).to_be_visible()
    expect(page.get_by_text("answer 50 % → 20 %")).to_be_visible()
    expect(page.get_by_role("row", name="content 0.61 0.30")).to_be_visible()


# ---- empty, large, narrow


def test_empty_rooms_say_what_to_type(visit: Open, bare: str) -> None:
    page = visit("ask", bare, key=False)
    expect(page.get_by_text("suffice serve --library library")).to_be_visible()
    page.get_by_role("link", name="Label").click()
    expect(page.get_by_text("suffice serve --labels labels.jsonl")).to_be_visible()
    page.get_by_role("link", name="Report").click()
    expect(page.get_by_text("suffice serve --report run.json")).to_be_visible()
    expect(page.get_by_text("Too few checks so far")).to_be_visible()
    page.get_by_role("link", name="Check").click()
    expect(page.get_by_role("button", name="Find hits in the library")).to_be_hidden()
    checked(page, "Who taught Ada?", "Ada was taught by Mary.")
    expect(page.get_by_role("button", name="Expand from the library")).to_be_disabled()


def test_the_keyboard_goes_through_it_all_and_focus_follows_the_view(visit: Open) -> None:
    page = visit()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    for name in ("Check", "Ask", "Label", "Report"):
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name=name)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Can the gate be trusted?")).to_be_focused()
    assert page.get_by_role("link", name="Report").get_attribute("aria-current") == "page"
    assert (
        page.get_by_role("main").count()
        == page.get_by_role("banner").count()
        == page.get_by_role("contentinfo").count()
        == 1
    )


def press_until(page: Any, key: str, target: Any) -> None:
    """Press a key until this has the focus."""
    for _ in range(60):
        if target.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{key} does not lead to {target}")


def test_every_view_can_be_used_by_keyboard_alone_on_a_phone(visit: Open) -> None:
    page = visit(viewport={"width": 360, "height": 740})

    def go_to(view: str) -> None:
        press_until(page, "Shift+Tab", page.get_by_role("link", name=view, exact=True))
        page.keyboard.press("Enter")

    def fill(field: str, text: str) -> None:
        press_until(page, "Tab", page.locator(field))
        page.keyboard.type(text)

    fill("#check-question", "Who taught Ada?")
    fill("#check-hits", "Ada was taught by Mary.")
    press_until(page, "Tab", page.get_by_role("button", name="Check", exact=True))
    page.keyboard.press("Enter")
    expect(page.locator("#check-result .verdict")).to_be_visible()

    go_to("Ask")
    fill("#ask-question", COMPARISON)
    press_until(page, "Tab", page.get_by_role("button", name="Ask", exact=True))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Dog Law", exact=True).first).to_be_visible()

    go_to("Label")
    expect(page.locator("#label-question")).to_be_visible()
    page.keyboard.press("y")
    expect(page.locator("#label-status")).to_have_text("Stored: complete.")
    page.keyboard.press("u")
    expect(page.locator("#label-status")).to_have_text("Undone.")
    picture(page, "label")

    go_to("Report")
    expect(page.locator("#threshold-at")).to_have_text("0.70")
    press_until(page, "Tab", page.get_by_role("slider", name="Answer from"))
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#threshold-at")).to_have_text("0.72")


@pytest.mark.parametrize(
    ("name", "how"),
    [
        (
            "zoom",
            {"viewport": {"width": 500, "height": 450}, "device_scale_factor": 2},
        ),  # a window of 1000 at 200 %
        ("phone", {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}),
    ],
)
def test_nothing_is_cut_off_on_a_phone_or_at_twice_the_size(
    visit: Open, name: str, how: dict[str, Any]
) -> None:
    page = visit(**how)
    page.get_by_role("button", name="Fill in an example").click()
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator(".hits h3").last).to_be_visible()
    if name == "phone":
        picture(page, name, width=how["viewport"]["width"])
    for view in ("Check", "Ask", "Label", "Report"):
        page.get_by_role("link", name=view).click()
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= how["viewport"]["width"]
