"""A GGUF file of a language model with two small layers and random weights."""

import struct
from pathlib import Path

import numpy as np

# One token for each byte, as byte-level BPE writes them.
BYTES = [chr(one) for one in (*range(33, 127), *range(161, 173), *range(174, 324))]
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
VOCABULARY = len(BYTES) + 1 + len(SPECIAL)


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def metadata(value: object) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    assert isinstance(value, list)
    return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))


def tiny_metadata() -> dict[str, object]:
    return {
        "general.architecture": "qwen2", "qwen2.block_count": 2, "qwen2.embedding_length": 16,
        "qwen2.attention.head_count": 4, "qwen2.attention.head_count_kv": 2,
        "qwen2.feed_forward_length": 24, "qwen2.rope.freq_base": 1e6,
        "qwen2.attention.layer_norm_rms_epsilon": 1e-6, "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.tokens": [*BYTES, "he", *SPECIAL],
        "tokenizer.ggml.merges": ["h e"], "tokenizer.ggml.padding_token_id": VOCABULARY - 1,
    }  # fmt: skip


def tiny_tensors() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(1)
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (VOCABULARY, 16), "output_norm.weight": (16,),
    }  # fmt: skip
    for layer in range(2):
        shapes |= {
            f"blk.{layer}.{name}": shape for name, shape in {
                "attn_norm.weight": (16,), "ffn_norm.weight": (16,), "attn_q.weight": (16, 16),
                "attn_q.bias": (16,), "attn_k.weight": (8, 16), "attn_k.bias": (8,),
                "attn_v.weight": (8, 16), "attn_v.bias": (8,), "attn_output.weight": (16, 16),
                "ffn_gate.weight": (24, 16), "ffn_up.weight": (24, 16), "ffn_down.weight": (16, 24),
            }.items()
        }  # fmt: skip
    return {name: draw.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}


def write_gguf(path: Path, tensors: dict[str, np.ndarray], kind: int = 0) -> Path:
    entries = b"".join(text(key) + metadata(value) for key, value in tiny_metadata().items())
    places, start = b"", 0
    for name, one in tensors.items():
        places += text(name) + struct.pack("<I", one.ndim)
        places += struct.pack(f"<{one.ndim}Q", *one.shape[::-1]) + struct.pack("<IQ", kind, start)
        start += one.nbytes
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(tiny_metadata())) + entries + places
    head += b"\0" * (-len(head) % 32)
    path.write_bytes(head + b"".join(one.tobytes() for one in tensors.values()))
    return path
