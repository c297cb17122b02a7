"""Collate the ledger of the whole book from the claims files and the executed notebooks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linewise.conventions import conventions_of
from linewise.derive import display
from linewise.ledger.card import MIME
from linewise.ledger.claims import CLAIMS_SUFFIX, SHOWN, Claim, each, load_claims
from linewise.ledger.evidence import LedgerError
from linewise.ledger.theorem import Theorem, unpinned


@dataclass(frozen=True)
class Row:
    """A claim beside the record of its executed check (None where there is none)."""

    claim: Claim
    record: dict[str, Any] | None
    page: str

    @property
    def anchor(self) -> str:
        """The id of the claim's card in its page."""
        return self.claim.anchor


def collate(root: str | Path) -> list[Row]:
    """Return the rows of the ledger, in the order of the claims files below the book's chapters.

    Raises `LedgerError` when claims or notebooks are not well-formed, with a line for each.
    """

    def rows(path: Path) -> list[Row]:
        claims, records = _claims(path), {r["claim"]: r for r in records_of(_notebook(path))}
        page = path.relative_to(root).as_posix().removesuffix(CLAIMS_SUFFIX)
        return [Row(claim, records.get(key), page) for key, claim in claims.items()]

    return [row for found in each(rows, _claims_files(Path(root))) for row in found]


def audit(root: str | Path) -> list[str]:
    """Return what is wrong with the ledger; an empty list is a clean bill.

    A claim without an executed check, a check that names no claim, a check of which the claims file now says something
    else, a derivation that is not the one it pins, an id or a check that stands twice, and two cards of one anchor are
    each a problem.
    """
    problems: list[str] = []
    owners: dict[str, Path] = {}
    anchors: dict[str, str] = {}
    for path in _claims_files(Path(root)):
        claims = _claims(path)
        problems += [f"{key}: stands in {owners[key].name} and in {path.name}" for key in claims if key in owners]
        owners |= dict.fromkeys(claims, path)
        for key, claim in claims.items():
            if anchors.setdefault(claim.anchor, key) != key:
                problems.append(f"{key}: its card would have the id of {anchors[claim.anchor]}: {claim.anchor}")
        problems += list(_audit_chapter(path, claims))
    known = {_notebook(path) for path in owners.values()}
    for notebook in sorted(_chapters(Path(root)).rglob("*.ipynb")):
        if notebook not in known and ".ipynb_checkpoints" not in notebook.parts:
            problems += [f"{notebook.name}: the check of {r['claim']} names no claim" for r in records_of(notebook)]
    return problems


def records_of(notebook: Path) -> list[dict[str, Any]]:
    """Return the verdict records in the stored outputs of a notebook, in order."""
    if not notebook.is_file():
        return []
    found = [data[MIME] for data in _outputs(notebook) if MIME in data]
    for record in found:
        if not isinstance(record, dict) or not {"claim", "verdict"} <= set(record):
            raise LedgerError(f"{notebook}: expected a record with its claim and verdict, got {record!r}")
    return found


def derivations_of(notebook: Path) -> list[dict[str, Any]]:
    """Return the records of the derivations in the stored outputs of a notebook, in order, with those of its cards."""
    outputs = _outputs(notebook)
    with _expected(notebook):
        return [
            chain
            for data in outputs
            for chain in (*([data[display.MIME]] if display.MIME in data else []),
                          *data.get(MIME, {}).get("derivations", ()))
        ]  # fmt: skip


def _theorems(notebook: Path) -> dict[str, Theorem]:
    """Return what the derivations in a notebook's outputs show, by the fingerprints that cards name."""
    chains = derivations_of(notebook)
    with _expected(notebook):
        return {display.fingerprint(chain): Theorem.of_record(chain) for chain in chains}


def _outputs(notebook: Path) -> list[dict[str, Any]]:
    """Return the data of the stored outputs of a notebook, in order."""
    with _expected(notebook):
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        return [o.get("data", {}) for c in cells if c["cell_type"] == "code" for o in c["outputs"]]


def prose_of(notebook: Path) -> list[tuple[str, str]]:
    """Return the prose of a notebook, and the captions and alternative texts of its figures, each with its place."""
    found = []
    with _expected(notebook):
        for number, cell in enumerate(json.loads(notebook.read_text(encoding="utf-8"))["cells"]):
            source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
            described = cell["metadata"].get("mystnb", {})
            words = [described.get("image", {}).get("alt", ""), described.get("figure", {}).get("caption", "")]
            text = source if cell["cell_type"] == "markdown" else "\n".join(words)
            found.append((f"{notebook.name}: cell {number}", text))
    return found


@contextmanager
def _expected(notebook: Path) -> Iterator[None]:
    """Say of what is no notebook that it is none."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise LedgerError(f"{notebook}: expected a notebook, got {type(error).__name__}: {error}") from None


def _audit_chapter(path: Path, claims: dict[str, Claim]) -> Iterator[str]:
    notebook = _notebook(path)
    records = records_of(notebook)
    theorems = _theorems(notebook) if records else {}
    checked = [r["claim"] for r in records]
    for key, claim in claims.items():
        if not claim.is_decided:
            if checked.count(key):
                yield f"{path.name}: {key}: is {claim.verdict}, and yet has an executed check"
        elif checked.count(key) != 1:
            why = "" if checked.count(key) else _unchecked(notebook)
            yield f"{path.name}: {key}: expected one executed check, found {checked.count(key)}{why}"
    for record in records:
        judged = claims.get(record["claim"])
        if judged is None:
            yield f"{notebook.name}: the check of {record['claim']} names no claim"
        elif judged.is_decided and (stale := [name for name in SHOWN if judged.shown.get(name) != record.get(name)]):
            differ = "the claims file and the stored check differ; execute the chapter anew"
            yield f"{judged.id}: {', '.join(stale)}: {differ}"
        elif judged.is_decided:
            with _expected(notebook):
                named = [e["derivation"] for e in record.get("evidence", ()) if e["kind"] == "derivation"]
            if all(name in theorems for name in named):
                filed = tuple(theorem.as_recorded for theorem in judged.shows)
                yield from (f"{judged.id}: {said}" for said in unpinned(filed, tuple(theorems[n] for n in named)))


def _unchecked(notebook: Path) -> str:
    """Say why a notebook may lack a check, as far as it tells."""
    if not notebook.is_file():
        return f"; there is no {notebook.name}"
    with _expected(notebook):
        cells = list(enumerate(json.loads(notebook.read_text(encoding="utf-8"))["cells"]))
        outputs = [(number, output) for number, cell in cells for output in cell.get("outputs", ())]
        for number, output in outputs:
            if output.get("output_type") == "error":
                said = " ".join(f"{output['ename']}: {output['evalue']}".split())
                return f"; {notebook.name}: cell {number} stopped with {said}"
        run = outputs or any(cell.get("execution_count") for _, cell in cells)
    return "" if run else f"; {notebook.name} has not been executed"


def _claims_files(root: Path) -> list[Path]:
    return sorted(_chapters(root).rglob(f"*{CLAIMS_SUFFIX}"))


def _claims(path: Path) -> dict[str, Claim]:
    return load_claims(path.name.removesuffix(CLAIMS_SUFFIX), path.parent)


def _chapters(root: Path) -> Path:
    """Return the folder of a book's chapters."""
    folder = root / conventions_of(root).chapters
    if not folder.is_dir():
        raise FileNotFoundError(f"root: expected a folder that holds {folder.name}/, got {root}")
    return folder


def _notebook(claims_file: Path) -> Path:
    return claims_file.with_name(claims_file.name.removesuffix(CLAIMS_SUFFIX) + ".ipynb")
