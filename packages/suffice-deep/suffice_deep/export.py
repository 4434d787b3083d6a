"""The adapter as files that other servers load: GGUF for llama.cpp, PEFT's layout for vLLM."""

from __future__ import annotations

import json
from importlib.metadata import metadata
from pathlib import Path

from suffice.storage import write_atomically
from suffice_deep.adapter import SCALE, Adapter, Floats
from suffice_deep.graph import FILE_NAMES

PEFT_NAMES = {
    "query": "self_attn.q_proj", "key": "self_attn.k_proj", "value": "self_attn.v_proj",
    "out": "self_attn.o_proj", "gate": "mlp.gate_proj", "up": "mlp.up_proj",
    "down": "mlp.down_proj",
}  # fmt: skip


def export_adapter(adapter: Adapter, base: str, folder: Path) -> list[Path]:
    """Write `adapter.gguf`, PEFT's two files and the card, in 16 bits; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / one for one in ("adapter.gguf", "adapter_model.safetensors")]
    tensors = {name.split(".", 1)[1]: one.astype("<f2") for name, one in adapter.factors.items()}
    rank = next(one.shape[0] for name, one in tensors.items() if name.endswith(".a"))
    _write_gguf(files[0], tensors, SCALE * rank)
    _write_safetensors(files[1], tensors)
    config = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": base, "r": rank,
        "lora_alpha": SCALE * rank, "lora_dropout": 0.0, "bias": "none", "inference_mode": True,
        "target_modules": sorted(one.rpartition(".")[2] for one in PEFT_NAMES.values()),
    }  # fmt: skip
    write_atomically(folder / "adapter_config.json", json.dumps(config, indent=1) + "\n")
    card = metadata("suffice-deep").json["description"]  # the README of the package
    write_atomically(folder / "README.md", str(card))
    return [*files, folder / "adapter_config.json", folder / "README.md"]


def _write_gguf(path: Path, tensors: dict[str, Floats], alpha: float) -> None:
    import gguf

    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    for name, values in tensors.items():
        layer, part, side = name.split(".")
        writer.add_tensor(f"blk.{layer}.{FILE_NAMES[part]}.weight.lora_{side}", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_safetensors(path: Path, tensors: dict[str, Floats]) -> None:
    """A JSON header with the place of each tensor, its length before it, then the values."""
    header, end = dict[str, object](), 0
    for name, values in tensors.items():
        layer, part, side = name.split(".")
        full = (
            f"base_model.model.model.layers.{layer}.{PEFT_NAMES[part]}.lora_{side.upper()}.weight"
        )
        start, end = end, end + values.nbytes
        header[full] = {"dtype": "F16", "shape": values.shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for values in tensors.values():
            file.write(values.tobytes())
