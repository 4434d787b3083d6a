"""A GGUF file is read as llama.cpp reads it, and reading piece by piece changes nothing."""

import struct

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed, which runs the language model")

from tests.tiny_gguf import VOCABULARY, tiny_tensors, write_gguf  # noqa: E402

from suffice.errors import InputError  # noqa: E402
from suffice_research.training.language_model import (  # noqa: E402
    Q4_K,
    Q6_K,
    Decoder,
    Sizes,
    load_decoder,
    load_tokenizer,
    open_gguf,
    to_floats,
)

TINY = Sizes(VOCABULARY, layers=2, hidden=16, heads=4, key_heads=2, inner=24)


def plain_q4(block: bytes) -> list[float]:
    """`dequantize_row_q4_K` of llama.cpp, step by step."""
    scale, lowest = np.frombuffer(block[:4], np.float16).astype(np.float32)
    packed, values = block[4:16], block[16:]
    found = []
    for part in range(8):
        if part < 4:
            factor, minimum = packed[part] & 63, packed[part + 4] & 63
        else:
            factor = (packed[part + 4] & 15) | ((packed[part - 4] >> 6) << 4)
            minimum = (packed[part + 4] >> 4) | ((packed[part] >> 6) << 4)
        for one in values[part // 2 * 32 : part // 2 * 32 + 32]:
            level = one & 15 if part % 2 == 0 else one >> 4
            found.append(float(scale * factor * level - lowest * minimum))
    return found


def plain_q6(block: bytes) -> list[float]:
    """`dequantize_row_q6_K` of llama.cpp, step by step."""
    (scale,) = np.frombuffer(block[208:], np.float16).astype(np.float32)
    factors = np.frombuffer(block[192:208], np.int8).tolist()
    found = [0.0] * 256
    for half in range(2):
        low, high = block[64 * half : 64 * half + 64], block[128 + 32 * half : 160 + 32 * half]
        for at in range(32):
            levels = (
                (low[at] & 15) | ((high[at] & 3) << 4),
                (low[at + 32] & 15) | (((high[at] >> 2) & 3) << 4),
                (low[at] >> 4) | (((high[at] >> 4) & 3) << 4),
                (low[at + 32] >> 4) | ((high[at] >> 6) << 4),
            )
            for row, level in enumerate(levels):
                factor = factors[8 * half + 2 * row + at // 16]
                found[128 * half + 32 * row + at] = float(scale * factor * (level - 32))
    return found


@pytest.mark.parametrize(("kind", "plain", "size", "halves"), [
    (Q4_K, plain_q4, 144, (0, 2)),
    (Q6_K, plain_q6, 210, (208,)),
])  # fmt: skip
def test_blocks_become_the_same_floats_as_step_by_step(kind, plain, size, halves):
    draw = np.random.default_rng(0)
    blocks = draw.integers(0, 256, (20, size), dtype=np.uint8)
    for at in halves:
        blocks[:, at : at + 2] = draw.normal(0, 0.1, 20).astype(np.float16)[:, None].view(np.uint8)
    found = to_floats(torch.from_numpy(blocks.reshape(-1)), kind).view(20, 256)
    expected = [plain(block.tobytes()) for block in blocks]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)


# ---- files


def test_a_file_is_loaded_into_a_decoder(tmp_path):
    tensors = tiny_tensors()
    decoder = load_decoder(open_gguf(write_gguf(tmp_path / "tiny.gguf", tensors)))
    assert decoder.sizes.vocabulary == TINY.vocabulary
    np.testing.assert_array_equal(decoder.tokens.weight.detach(), tensors["token_embd.weight"])
    np.testing.assert_array_equal(decoder.layers[1].key.bias.detach(), tensors["blk.1.attn_k.bias"])
    tensors["output.weight"] = tensors["token_embd.weight"] + 1  # the more precise of the two
    decoder = load_decoder(open_gguf(write_gguf(tmp_path / "tiny.gguf", tensors)))
    np.testing.assert_array_equal(decoder.tokens.weight.detach(), tensors["output.weight"])


def test_files_that_cannot_be_read_are_errors_that_say_why(tmp_path):
    path, tensors = tmp_path / "model.gguf", tiny_tensors()
    with pytest.raises(InputError, match="does not exist"):
        open_gguf(path)
    for content in (b"", b"PK\x03\x04 a zip file"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="is not a GGUF file"):
            open_gguf(path)
    whole = write_gguf(path, tensors).read_bytes()
    for end in (6, 30, 500, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(InputError, match="is cut off"):
            open_gguf(path)
    path.write_bytes(b"GGUF" + struct.pack("<I", 9) + whole[8:])
    with pytest.raises(InputError, match="is GGUF version 9"):
        open_gguf(path)
    with pytest.raises(InputError, match=r"'token_embd.weight' is Q8_0, expected one of F32, Q4_K"):
        open_gguf(write_gguf(path, tensors, kind=8))
    del tensors["blk.1.ffn_up.weight"]
    with pytest.raises(InputError, match=r"'blk.1.ffn_up.weight' is missing"):
        load_decoder(open_gguf(write_gguf(path, tensors)))


def test_the_tokenizer_gives_every_text_back(tmp_path):
    tokenizer = load_tokenizer(open_gguf(write_gguf(tmp_path / "tiny.gguf", tiny_tensors())))
    for one in ("[1] Invoice 2031: paid, isn't it?\nQuestion:", "Čapek – 3 °C, 東京", " the  he\t"):
        assert tokenizer.decode(tokenizer.encode(one).ids) == one
    assert tokenizer.encode("he").tokens == ["he"]
    end = VOCABULARY - 1  # a document cannot end the text
    assert end not in tokenizer.encode("<|endoftext|>").ids


# ---- reading


def tiny_decoder() -> Decoder:
    torch.manual_seed(0)
    return Decoder(TINY).eval()


def test_what_comes_later_changes_nothing():
    decoder = tiny_decoder()
    short, long = (decoder(torch.tensor([row])) for row in ([1, 2, 3], [1, 2, 3, 4, 5]))
    torch.testing.assert_close(long[:, :3], short, rtol=1e-4, atol=1e-5)
