"""``python -m attnlab.report MODEL``: the numbers and figures of eleven chapters on the heads of a local model.

MODEL is a local model, as ``python -m attnlab.heads.extract`` takes it (a folder in Hugging Face's layout with a model
of BERT's, RoBERTa's or Llama's kind, or a GGUF file of Llama's kind), with --text; or a file of heads that this command
has written. Nothing is downloaded. Each number stands beside those of the models that the book measures, and beside the
same number without the attention sink.
"""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path

from attnlab import commands
from attnlab.heads.load import Heads, read_heads
from attnlab.records import replace, text_of

#: Tokens of a decoder's text, unless told otherwise.
LENGTH = 128

_COMMAND = commands.Command(
    "attnlab.report",
    __doc__,
    takes="half a minute for an encoder and a text of some hundred tokens, a minute or two for a decoder of 135 "
    "million parameters.",
    writes="report.html, one page with everything in it, and report.csv, a row for each head, in the folder --out. "
    "Files of these names are replaced.",
    kept="nothing was written, and the same command begins again",
    extra="model",
    called={"directory": "MODEL", "path": "MODEL", "model": "MODEL"},
)


def main(arguments: list[str] | None = None) -> int:
    """Write the report on one model; return the exit status."""
    parser = _COMMAND.parser()
    parser.add_argument("model", type=commands.existing_path, metavar="MODEL",
                        help="a local model, a folder or a GGUF file; or a file of heads, NAME.npz")  # fmt: skip
    parser.add_argument("--text", type=commands.existing_file, metavar="FILE",
                        help="a text in UTF-8; a file of heads has its own")  # fmt: skip
    parser.add_argument("--length", type=commands.whole(3), metavar="N",
                        help=f"the first N tokens of a decoder's text; default: {LENGTH}, or all if there are "
                        "fewer")  # fmt: skip
    parser.add_argument("--out", type=commands.folder, default=Path(), metavar="DIR",
                        help="the folder to write to; default: the current one")  # fmt: skip
    return _COMMAND.carry_out(parser, _run, arguments)


def _run(given: argparse.Namespace, line: str) -> str:
    from tqdm import tqdm

    from attnlab.report.measures import LEAST, MEASURES, attention_of
    from attnlab.report.page import compared, page

    heads = _heads(given)
    if heads.n < LEAST:
        raise ValueError(f"{'text' if given.text else 'model'}: expected at least {LEAST} tokens, got {heads.n}")
    with tqdm(total=len(MEASURES), desc="measuring", unit="measure") as bar:
        text, found = page(given.model.resolve().stem, attention_of(heads), heads.tokens, compared(), bar.update)
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(["layer", "head", *(measure.label for measure in MEASURES)])
    for layer in range(heads.layers):
        for head in range(heads.heads):
            rows.writerow([layer + 1, head + 1, *(f"{values[layer, head]:.6g}" for values in found.values())])
    given.out.mkdir(parents=True, exist_ok=True)
    for name, content in (("report.html", text), ("report.csv", table.getvalue())):
        replace(given.out / name, content.encode())
    return f"{given.out / 'report.html'}  {heads.layers * heads.heads} heads, {len(MEASURES)} numbers of each"


def _heads(given: argparse.Namespace) -> Heads:
    from tqdm import tqdm

    from attnlab.heads.local import is_decoder, local_heads

    if given.model.suffix == ".npz":
        if given.text or given.length:
            raise ValueError("text, length: expected none beside a file of heads, which has its own text")
        return read_heads(given.model)
    if not given.text:
        raise ValueError("text: expected a file with a text for the model, --text FILE, got none")
    length = (given.length or LENGTH) if is_decoder(given.model) else given.length
    with tqdm(desc="reading", unit="part") as bar:
        return local_heads(given.model, text_of(given.text, "text"), length=length, report=bar.update)


if __name__ == "__main__":
    raise SystemExit(main())
