"""Files that are none of the package's own: each reader says so, in an error that names the argument."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab.heads.encoder import load_encoder, model_directory, tokenize, weights_hash
from attnlab.heads.load import read_decoder, read_decoders, read_heads
from attnlab.records import json_object, text_of

READERS = (read_heads, read_decoders, read_decoder)


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def header(shape: str, kind: str = "<f8") -> bytes:
    """An array's header with no array behind it."""
    text = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def spoilt(content: bytes, mark: bytes, offset: int, value: bytes) -> bytes:
    """An archive with other bytes at so many after each mark."""
    found, at = bytearray(content), content.find(mark)
    while at >= 0:
        found[at + offset : at + offset + len(value)] = value
        at = content.find(mark, at + 1)
    return bytes(found)


NAMES = ("characters.weight", "positions.weight", "norm.weight", "norm.bias", "read.weight", "read.bias", "alphabet",
         "heads", "layers.0.norm.weight", "Q", "K", "tokens", "seeds")  # fmt: skip
GOOD = {f"{name}.npy": npy(np.ones((1, 1, 2, 3))) for name in NAMES} | {
    f"{name}.npy": npy(np.asarray(["a", "b"])) for name in ("tokens", "alphabet")}  # fmt: skip
#: One array of each file, as something else.
MEMBERS = {
    "text": npy(np.asarray(["a", "b"])), "records": npy(np.zeros(2, [("a", "f4")])), "void": npy(np.zeros(2, "V8")),
    "complex": npy(np.ones((1, 1, 2, 3)) * 1j), "dates": npy(np.asarray(["2020"], "M8[D]")), "no array": b"hello",
    "a header of 8 TB": header("(1000000, 1000000)"), "a header beyond integers": header(f"({10**30},)"),
    "a negative shape": header("(-1, 3)"), "an open bracket": header("(1, 3"), "a word for a shape": header("'a'"),
    "no such kind": header("(1,)", "zz"), "a header alone": header("(2, 3)"), "another version": b"\x93NUMPY\x09\x00",
    "nothing": b"", "a deep header": header("(" * 40 + "1" + ")" * 40),
}  # fmt: skip


def archives() -> Iterator[tuple[str, bytes]]:
    stored = zipped(GOOD)
    yield "encrypted", spoilt(spoilt(stored, b"PK\x03\x04", 6, b"\x01"), b"PK\x01\x02", 8, b"\x01")
    yield "another method", spoilt(stored, b"PK\x01\x02", 10, b"\x63")
    for name, method in (("LZMA", zipfile.ZIP_LZMA), ("bzip2", zipfile.ZIP_BZIP2), ("deflate", zipfile.ZIP_DEFLATED)):
        yield f"damaged {name}", spoilt(zipped(GOOD, method), b".npy", 8, bytes(24))
    yield "cut off", stored[: len(stored) // 2]
    yield "no members", zipped({})
    yield "an archive of another kind", zipped({"a.txt": b"a"})
    for name, content in {
        "nothing": b"",
        "words": b"hello",
        "a pickle": b"\x80\x04N.",
        "an array": npy(np.ones(2)),
    }.items():
        yield name, content
    for name, member in MEMBERS.items():
        yield f"{name} among the members", zipped(dict.fromkeys(GOOD, member))


@pytest.mark.parametrize("content", [pytest.param(content, id=name) for name, content in archives()])
def test_a_file_of_another_kind_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file.npz").write_bytes(content)
    for read in READERS:
        with pytest.raises(ValueError, match=r"^path: "):
            read(tmp_path / "file.npz")


@pytest.mark.parametrize(
    "name", ["Q", "K", "tokens", "seeds", "characters.weight", "alphabet", "heads", "layers.0.norm.weight"]
)
def test_one_member_of_another_kind_is_named(tmp_path: Path, name: str) -> None:
    for kind, member in MEMBERS.items():
        (tmp_path / "file.npz").write_bytes(zipped(GOOD | {f"{name}.npy": member}))
        for read in READERS:
            if kind != "text" or name not in ("tokens", "alphabet"):
                try:
                    read(tmp_path / "file.npz")
                except ValueError as error:
                    assert str(error).startswith("path: "), kind


def places(folder: Path) -> dict[str, Any]:
    return {"a long name": "x" * 5000, "a folder": folder, "below a file": folder / "file" / "more"}


@pytest.mark.parametrize(
    "read", [*READERS, load_encoder, model_directory, weights_hash, lambda path: tokenize(path, "a", longest=3)]
)
def test_a_place_where_no_file_can_be_is_named(tmp_path: Path, read: Callable[[Any], Any]) -> None:
    (tmp_path / "file").write_text("a")
    for name, place in places(tmp_path).items():
        with pytest.raises((ValueError, FileNotFoundError)) as caught:
            read(place)
        assert str(caught.value).startswith(("path: ", "directory: ")) or name == "below a file"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"null", b"\xff", b"[" * 100_000, b'"\\ud800"'])
def test_what_is_no_object_of_json_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(ValueError, match="^path: expected (a JSON object|JSON) in .*, got "):
        json_object(tmp_path / "a.json", "path")
    (tmp_path / "a.json").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="^text: expected a file in UTF-8, got "):
        text_of(tmp_path / "a.json", "text")
