"""The attention heads that the book measures: queries and keys of a real trained encoder.

`load_heads()` gives the 72 heads of all-MiniLM-L6-v2 on one passage; `data/README.md` tells
where they come from. `read_heads` reads a file that ``python -m attnmath.heads.extract`` has made
from another model.
"""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from jaxtyping import Float

from attnmath.arrays import Numpy
from attnmath.attention import attention_weights, scores
from attnmath.checks import floats, one_of, path_to

#: The samples that ship with the package, and the SHA-256 of each file.
SAMPLES = {
    "passage": "cd128935fc95547263c29da338c8aeaeccda13c2b20bef3bb82ddc053c65cad3",
    "sentence": "a3f9d8b3a8d34a608e3f2fc3ca70ccfdadb64ed710716b8b3724a7f4a684018c",
}


@dataclass(frozen=True)
class Heads:
    """Queries and keys of every head of an encoder on one text.

    Q, K : in float64.  tokens : the n tokens.
    """

    Q: Float[Numpy, "layers heads n d_k"]
    K: Float[Numpy, "layers heads n d_k"]
    tokens: tuple[str, ...]

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
        """Scaled scores of every head."""
        return scores(self.Q, self.K)

    def weights(self) -> Float[Numpy, "layers heads n n"]:
        """Attention weights of every head, equation (5.5.1)."""
        return attention_weights(self.Q, self.K)


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
    with resources.as_file(resources.files("attnmath") / "data" / f"{sample}.npz") as path:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != SAMPLES[sample]:
            raise ValueError(f"sample: expected {path.name} with SHA-256 {SAMPLES[sample]}, got {found}")
        return read_heads(path)


def read_heads(path: str | Path) -> Heads:
    """Read heads from a file of ``python -m attnmath.heads.extract``; no pickle is loaded.

    Raises `FileNotFoundError` for a missing file and `ValueError` for one with other contents.
    """
    path = path_to(path, "path")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in ("Q", "K", "tokens") if name in arrays.files}
    except (ValueError, EOFError, IsADirectoryError, zipfile.BadZipFile) as error:
        raise ValueError(f"path: expected a file of python -m attnmath.heads.extract, got {path} ({error})") from None
    if missing := {"Q", "K", "tokens"} - set(found):
        raise ValueError(f"path: expected the arrays Q, K and tokens in {path}, missing {', '.join(sorted(missing))}")
    Q, K = (floats(found[name], f"path: {name}") for name in "QK")
    tokens = tuple(str(token) for token in found["tokens"].ravel())
    if Q.ndim != 4 or Q.shape != K.shape or Q.shape[2] != len(tokens):
        raise ValueError(
            f"path: expected Q and K of shape (layers, heads, {len(tokens)}, d_k), got {Q.shape}, {K.shape}"
        )
    return Heads(Q, K, tokens)
