"""The attention heads that the book measures: queries and keys of trained models.

`load_heads()` gives the 72 heads of an encoder, all-MiniLM-L6-v2, on one passage, and `load_pretrained()` the 270 heads
of a decoder, SmolLM2-135M-Instruct, on the beginning of the same passage or of a text on Python; `data/README.md` tells
where they come from. `read_heads` reads a file that ``python -m attnlab.heads.extract`` has made from another model.

`load_decoders()` gives the heads of small causal decoders, equal but for their seeds, which
``python -m attnlab.heads.train`` has trained; `read_decoders` reads a file of that command.
`load_decoder()` gives all weights of the first of them; `read_decoder` reads a file of
``python -m attnlab.heads.weights``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int, Shaped

from attnlab.records import arrays_of
from attnmath.arrays import Numpy
from attnmath.checks import flag, floats, one_of, path_to
from attnmath.operator.attention import attention_weights, causal_mask, scores

#: The samples that ship with the package, and the SHA-256 of each file.
SAMPLES = {
    "passage": "cd128935fc95547263c29da338c8aeaeccda13c2b20bef3bb82ddc053c65cad3",
    "sentence": "a3f9d8b3a8d34a608e3f2fc3ca70ccfdadb64ed710716b8b3724a7f4a684018c",
}

#: The texts of the pretrained decoder that ship with the package, and the SHA-256 of each file.
PRETRAINED = {
    "passage": "1304ea2c0e2bd127cfec3adce1ae4a7b32cf9be2bd44edd1ef23a48b02a7f8e3",
    "documentation": "e712080da09a9f1cc4e583a9df9719d99963d636cdd67a01fcc369e786c2aa83",
}

#: SHA-256 of `decoder_weights.npz`.
WEIGHTS = "f2e60e263189848909884ebef191c4f0e249c120caa313077dc01f7782afbc8a"

#: SHA-256 of `decoder.npz`.
DECODERS = "ee5c3ce46a69d07f0086a2cac00e4be5963c276ee371423a66f6dfd33db8c5df"


@dataclass(frozen=True)
class Heads:
    """Queries and keys of every head of one model on one text.

    Q, K : in float64; rotary positions are in them already.  tokens : the n tokens.
    causal : whether a token sees those up to itself alone, as in a decoder.
    group : how many successive heads share a key head, so that their K are equal.
    """

    Q: Float[Numpy, "layers heads n d_k"]
    K: Float[Numpy, "layers heads n d_k"]
    tokens: tuple[str, ...]
    causal: bool = False
    group: int = 1

    @property
    def layers(self) -> int:
        """Number of layers."""
        return int(self.Q.shape[0])

    @property
    def heads(self) -> int:
        """Number of heads in a layer."""
        return int(self.Q.shape[1])

    @property
    def n(self) -> int:
        """Number of tokens."""
        return int(self.Q.shape[2])

    @property
    def d_k(self) -> int:
        """Width of a head."""
        return int(self.Q.shape[3])

    def scores(self) -> Float[Numpy, "layers heads n n"]:
        """Scaled scores of every head, those that a causal mask hides included."""
        return scores(self.Q, self.K)

    def weights(self) -> Float[Numpy, "layers heads n n"]:
        """Attention weights of every head, equation (5.5.1); lower triangular where the model is causal (5.1.10)."""
        return attention_weights(self.Q, self.K, mask=causal_mask(self.n) if self.causal else None)


def load_heads(sample: str = "passage") -> Heads:
    """Load a sample that ships with the package, after checking its hash.

    sample : "passage" (several hundred tokens) or "sentence" (one short sentence).

    >>> heads = load_heads("sentence")
    >>> heads.layers, heads.heads, heads.d_k
    (6, 12, 32)
    >>> heads.tokens[:4]
    ('[CLS]', 'the', 'rabbit', 'actually')
    """
    one_of(sample, SAMPLES, "sample")
    with resources.as_file(resources.files("attnlab") / "data" / f"{sample}.npz") as path:
        _intact(path, SAMPLES[sample], "sample")
        return read_heads(path)


def load_pretrained(text: str = "passage") -> Heads:
    """Load the heads of a pretrained decoder on the first 80 tokens of a text, after checking the hash of the file.

    The decoder is SmolLM2-135M-Instruct, whose weights were rounded to 4 bits: 30 layers of 9 heads, of which each
    three share a key head. It adds no token in front of a text: token 0 is the first of the text.
    text : "passage" (the passage of `load_heads`) or "documentation" (the section on the try statement).

    >>> heads = load_pretrained()
    >>> heads.Q.shape, heads.causal, heads.group
    ((30, 9, 80, 64), True, 3)
    >>> heads.tokens[:3]
    ('Alice', ' was', ' beginning')
    """
    one_of(text, PRETRAINED, "text")
    with resources.as_file(resources.files("attnlab") / "data" / f"pretrained_{text}.npz") as path:
        _intact(path, PRETRAINED[text], "text")
        return read_heads(path)


def read_heads(path: str | Path) -> Heads:
    """Read heads from a file of ``python -m attnlab.heads.extract``; no pickle is loaded.

    A key head that several heads share is in the file once, and in the result for each of them.
    Raises `FileNotFoundError` for a missing file and `ValueError` for one with other contents.
    """
    found = _arrays(path, ("Q", "K", "tokens"), "extract", begin="causal")
    Q, K = (_real(found, name) for name in "QK")
    tokens, causal = _words(found, "tokens"), found.get("causal", np.asarray(False))
    if causal.dtype.kind != "b" or causal.ndim:
        raise ValueError(f"path: causal: expected True or False, got {causal.dtype} of shape {causal.shape}")
    group = Q.shape[1] // max(1, K.shape[1]) if Q.ndim == K.ndim == 4 else 1
    if Q.ndim != 4 or (K.shape[0], K.shape[1] * group, *K.shape[2:]) != Q.shape or Q.shape[2] != len(tokens):
        raise ValueError(
            f"path: expected Q and K of shape (layers, heads, {len(tokens)}, d_k), or K of fewer heads that divide "
            f"those of Q, got {Q.shape}, {K.shape}"
        )
    return Heads(Q, np.repeat(K, group, axis=1), tokens, bool(causal), group)


@dataclass(frozen=True)
class Decoders:
    """Queries and keys of every head of causal decoders on one text; the decoders differ in their seeds alone.

    Q, K : in float64.  tokens : the n characters of the text.  seeds : of the decoders, in the order of the first axis.
    trained : whether Q and K are those after training, or those of the same decoders before it.
    """

    Q: Float[Numpy, "seeds layers heads n d_k"]
    K: Float[Numpy, "seeds layers heads n d_k"]
    tokens: tuple[str, ...]
    seeds: tuple[int, ...]
    trained: bool

    @property
    def layers(self) -> int:
        """Number of layers."""
        return int(self.Q.shape[1])

    @property
    def heads(self) -> int:
        """Number of heads in a layer."""
        return int(self.Q.shape[2])

    @property
    def n(self) -> int:
        """Number of tokens."""
        return int(self.Q.shape[3])

    @property
    def d_k(self) -> int:
        """Width of a head."""
        return int(self.Q.shape[4])

    def scores(self) -> Float[Numpy, "seeds layers heads n n"]:
        """Scaled scores of every head, those that the causal mask hides included."""
        return scores(self.Q, self.K)

    def weights(self) -> Float[Numpy, "seeds layers heads n n"]:
        """Attention weights of every head under the causal mask (5.1.10): lower triangular, rows sum to 1."""
        return attention_weights(self.Q, self.K, mask=causal_mask(self.n))


def load_decoders(*, trained: bool = True) -> Decoders:
    """Load the heads of the decoders that ship with the package, after checking the hash of their file.

    trained : False for the same decoders at initialisation, from the same seeds.

    >>> decoders = load_decoders()
    >>> decoders.Q.shape
    (4, 4, 4, 128, 24)
    >>> "".join(decoders.tokens[9:23])
    'multiplication'
    """
    flag(trained, "trained")
    with resources.as_file(resources.files("attnlab") / "data" / "decoder.npz") as path:
        _intact(path, DECODERS, "decoders")
        return read_decoders(path, trained=trained)


def read_decoders(path: str | Path, *, trained: bool = True) -> Decoders:
    """Read decoders from a file of ``python -m attnlab.heads.train``; no pickle is loaded.

    trained : False for the same decoders at initialisation.
    Raises `FileNotFoundError` for a missing file and `ValueError` for one with other contents.
    """
    trained = flag(trained, "trained")
    names = ("Q", "K") if trained else ("Q_untrained", "K_untrained")
    found = _arrays(path, (*names, "tokens", "seeds"), "train")
    Q, K = (_real(found, name) for name in names)
    tokens, seeds = _words(found, "tokens"), found["seeds"].ravel()
    if Q.ndim != 5 or Q.shape != K.shape or (Q.shape[0], Q.shape[3]) != (len(seeds), len(tokens)):
        raise ValueError(
            f"path: expected Q and K of shape ({len(seeds)}, layers, heads, {len(tokens)}, d_k), "
            f"got {Q.shape}, {K.shape}"
        )
    if not np.issubdtype(seeds.dtype, np.integer):
        raise ValueError(f"path: expected integers as seeds, got {seeds.dtype}")
    return Decoders(Q, K, tokens, tuple(int(seed) for seed in seeds), trained)


@dataclass(frozen=True)
class TrainedDecoder:
    """Every parameter of a small causal decoder, in float32, under the names of `attnlab.heads.decoder`.

    heads : in a layer.  alphabet : the characters that it knows, in the order of their numbers.
    """

    parameters: Mapping[str, Float[Numpy, "..."]]
    heads: int
    alphabet: tuple[str, ...]

    @property
    def layers(self) -> int:
        """Number of layers."""
        return sum(name.endswith("norm_after.weight") for name in self.parameters)

    @property
    def width(self) -> int:
        """Width of the model."""
        return int(self.parameters["characters.weight"].shape[1])

    @property
    def context(self) -> int:
        """Number of characters that it sees at most."""
        return int(self.parameters["positions.weight"].shape[0])

    def numbers(self, text: str) -> Int[Numpy, "length"]:
        """Return the number of each character of a text.

        Raises `ValueError` for a character that the decoder does not know.
        """
        if not isinstance(text, str):
            raise TypeError(f"text: expected a string, got {type(text).__name__}")
        place = {character: number for number, character in enumerate(self.alphabet)}
        if unknown := sorted(set(text) - set(place)):
            raise ValueError(f"text: expected the decoder's {len(place)} characters, got {unknown[0]!r}")
        return np.asarray([place[character] for character in text], dtype=np.int64)


def load_decoder() -> TrainedDecoder:
    """Load the weights of a decoder that ship with the package, after checking the hash of their file.

    It is the decoder of seed 0, trained again. Its queries and keys are those of `load_decoders` for that seed, as far
    as `decoder_weights.json` says.

    >>> decoder = load_decoder()
    >>> decoder.layers, decoder.heads, decoder.width, decoder.context
    (4, 4, 96, 128)
    """
    with resources.as_file(resources.files("attnlab") / "data" / "decoder_weights.npz") as path:
        _intact(path, WEIGHTS, "decoder")
        return read_decoder(path)


def read_decoder(path: str | Path) -> TrainedDecoder:
    """Read the weights of a decoder from a file of ``python -m attnlab.heads.weights``; no pickle is loaded.

    Raises `FileNotFoundError` for a missing file and `ValueError` for one with other contents.
    """
    names = ("characters.weight", "positions.weight", "norm.weight", "norm.bias", "read.weight", "read.bias")
    found = _arrays(path, (*names, "alphabet", "heads"), "weights", begin="layers.")
    rest = [name for name in found if name.startswith("layers.")]
    parameters = {name: _real(found, name).astype(np.float32) for name in (*names, *rest)}
    alphabet, heads = _words(found, "alphabet"), found["heads"]
    tables = {name: parameters[name].shape for name in ("characters.weight", "positions.weight")}
    if any(len(shape) != 2 for shape in tables.values()) or not heads.dtype.kind == "i" or heads.ndim:
        raise ValueError(f"path: expected two tables and one whole number of heads, got {tables}, heads {heads}")
    (_, width), (context, _) = tables.values()
    expected = _shapes(width, len(alphabet), context, max(1, len({name.split(".")[1] for name in rest})))
    if strange := sorted(set(rest) - set(expected)):
        raise ValueError(f"path: expected the parameters of a decoder's layers, got {strange[0]}")
    for name, shape in expected.items():
        if name not in parameters or parameters[name].shape != shape:
            got = parameters[name].shape if name in parameters else "none"
            raise ValueError(f"path: expected {name} of shape {shape}, got {got}")
    if heads < 1 or width % heads:
        raise ValueError(f"path: expected a number of heads that divides the width {width}, got {heads}")
    return TrainedDecoder(parameters, int(heads), alphabet)


def _shapes(width: int, alphabet: int, context: int, layers: int) -> dict[str, tuple[int, ...]]:
    """The shape of each parameter of `attnlab.heads.decoder.Decoder`."""
    shapes: dict[str, tuple[int, ...]] = {
        "characters.weight": (alphabet, width), "positions.weight": (context, width), "norm.weight": (width,),
        "norm.bias": (width,), "read.weight": (alphabet, width), "read.bias": (alphabet,)}  # fmt: skip
    for layer in (f"layers.{number}." for number in range(layers)):
        shapes |= {f"{layer}{norm}.{kind}": (width,) for norm in ("norm", "norm_after") for kind in ("weight", "bias")}
        shapes |= {f"{layer}project.{number}.weight": (width, width) for number in range(4)}
        shapes |= {f"{layer}forward_part.0.weight": (4 * width, width), f"{layer}forward_part.0.bias": (4 * width,)}
        shapes |= {f"{layer}forward_part.2.weight": (width, 4 * width), f"{layer}forward_part.2.bias": (width,)}
    return shapes


def _intact(path: Path, expected: str, name: str) -> None:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != expected:
        raise ValueError(f"{name}: expected {path.name} with SHA-256 {expected}, got {found}")


def _real(found: Mapping[str, Shaped[Numpy, "..."]], name: str) -> Shaped[Numpy, "..."]:
    """Return one array of a file in double precision; what is no array of real numbers is a fault of the file."""
    try:
        return floats(found[name], f"path: {name}")
    except TypeError as error:
        raise ValueError(str(error)) from None


def _words(found: Mapping[str, Shaped[Numpy, "..."]], name: str) -> tuple[str, ...]:
    if found[name].dtype.kind != "U":
        raise ValueError(f"path: {name}: expected text, got {found[name].dtype}")
    return tuple(str(word) for word in found[name].ravel())


def _arrays(
    path: str | Path, names: tuple[str, ...], command: str, *, begin: str | None = None
) -> dict[str, Shaped[Numpy, "..."]]:
    """Return the named arrays of a file that a command of this package has written, and those whose names begin so."""
    path = path_to(path, "path")
    found = arrays_of(
        path,
        f"a file of python -m attnlab.heads.{command}",
        lambda name: name in names or (begin is not None and name.startswith(begin)),
    )
    if missing := [name for name in names if name not in found]:
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        raise ValueError(f"path: expected the arrays {listed} in {path}, missing {', '.join(sorted(missing))}")
    return found
