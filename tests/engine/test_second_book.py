"""The engine serves a book on another subject: ``examples/least_squares``, with linewise installed and nothing else.

linewise is built into a wheel and installed into a folder of its own. The programs of this file start with that folder
and the environment's libraries on their path, without its editable installs: attnmath and attnlab are not there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

import stamps

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "least_squares"
CHAPTER = "chapters/least_squares"
VERDICTS = ["proved", "confirmed", "defined", "observed", "amended", "refuted", "left open"]
#: -S leaves out site-packages and with it every editable install, -P the current folder.
ISOLATED = [sys.executable, "-S", "-P"]
BUILT = shutil.ignore_patterns("_build", ".ipynb_checkpoints", "__pycache__", "build", "*.egg-info")

EXECUTE = """
import sys, nbformat, nbclient
path = sys.argv[1]
book = nbformat.read(path, as_version=4)
where = {"metadata": {"path": sys.argv[2]}}
nbclient.NotebookClient(book, kernel_name="isolated", timeout=120, resources=where).execute()
nbformat.write(book, path)
"""


class Outside:
    """A place with linewise alone, and a copy of the book."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.book, self.packages = folder, folder / "book", folder / "packages"
        paths = sysconfig.get_paths()
        libraries = dict.fromkeys([str(self.packages), paths["purelib"], paths["platlib"]])
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "JUPYTER", "IPYTHON", "MPL"))},
            "PYTHONPATH": os.pathsep.join(libraries),
            "JUPYTER_PATH": str(folder / "jupyter"),
            "IPYTHONDIR": str(folder / "ipython"),
            "OMP_NUM_THREADS": "1",
        }

    def run(self, *arguments: str, at: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run Python there."""
        return subprocess.run(
            [*ISOLATED, *arguments], cwd=at or self.book, env=self.environment, capture_output=True, text=True
        )

    def install(self) -> None:
        """Build linewise from a copy of its folder, install the wheel, and name a kernel that is isolated too."""
        source = shutil.copytree(ROOT / "code" / "linewise", self.folder / "linewise", ignore=BUILT)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
        build = ["wheel", "--no-deps", "--no-build-isolation", "-w", str(self.folder), str(source)]
        subprocess.run([*pip, *build], check=True, capture_output=True)
        (wheel,) = self.folder.glob("linewise-*.whl")
        target = ["install", "--no-deps", "--no-index", "--target", str(self.packages), str(wheel)]
        subprocess.run([*pip, *target], check=True, capture_output=True)
        kernel = self.folder / "jupyter" / "kernels" / "isolated"
        kernel.mkdir(parents=True)
        start = [*ISOLATED, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        (kernel / "kernel.json").write_text(json.dumps({"argv": start, "display_name": "", "language": "python"}))


def succeeded(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def prepare(place: Outside) -> None:
    """Install linewise there, execute the book's chapter and build its site."""
    place.folder.mkdir()
    place.install()
    shutil.copytree(EXAMPLE, place.book, ignore=BUILT)
    path = place.book / f"{CHAPTER}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    path.write_text(json.dumps(notebook), encoding="utf-8")
    succeeded(place.run("-c", EXECUTE, str(path), str(path.parent)))
    build = ["build", ".", "-W", "-n", "--keep-going", "-q"]
    succeeded(place.run("-c", "from jupyter_book.cli.main import main; main()", *build))


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Outside:
    """The place, made once for all workers of a run: their own folders lie in one."""
    own = tmp_path_factory.getbasetemp()
    place = Outside((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "outside")
    with stamps.only_one("second-book"):
        if not place.folder.exists():
            prepare(place)
    return place


def page(outside: Outside, name: str) -> BeautifulSoup:
    return BeautifulSoup((outside.book / "_build" / "html" / f"{name}.html").read_text(encoding="utf-8"), "html.parser")


def test_nothing_but_linewise_is_there(outside):
    where = succeeded(outside.run("-c", "import linewise.pages; print(linewise.__file__)"))
    assert Path(where.strip()).is_relative_to(outside.packages)
    for name in ("attnmath", "attnlab"):
        assert f"No module named '{name}'" in outside.run("-c", f"import {name}").stderr
    loaded = "import sys, linewise.ledger; print({'sphinx', 'matplotlib', 'torch', 'bs4'} & set(sys.modules))"
    assert succeeded(outside.run("-c", loaded)).strip() == "set()"


def test_the_wheel_holds_all_files_of_the_package(outside):
    """Beside the modules: the conventions, the scripts, the style sheets, the templates, and the mark of its types."""
    own = ROOT / "code" / "linewise"
    left_out = {"LICENSE", "README.md", "pyproject.toml"}
    wanted = {p.relative_to(own) for p in own.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    assert [p for p in wanted if p.name not in left_out and not (outside.packages / "linewise" / p).is_file()] == []
    assert len([*outside.packages.glob("linewise-*.dist-info/licenses/LICENSE")]) == 1


def test_the_readme_of_the_package_runs(outside):
    succeeded(outside.run("-m", "doctest", "-o", "NORMALIZE_WHITESPACE", str(ROOT / "code" / "linewise" / "README.md")))


def test_the_stored_outputs_are_those_of_its_code(outside):
    """What is decided is the same on every machine; the digits of rounding are not."""

    def decided(root: Path) -> list[tuple[str, list[str]]]:
        cells = json.loads((root / f"{CHAPTER}.ipynb").read_text(encoding="utf-8"))["cells"]
        outputs = [output["data"] for cell in cells for output in cell.get("outputs", [])]
        plain = ["".join(data["text/plain"]) for data in outputs]
        return [(text.partition("\n")[0], re.findall(r"rejects (.+?)(?: \(|\.)", text)) for text in plain]

    assert decided(outside.book) == decided(EXAMPLE)
    assert len(decided(EXAMPLE)) == 12  # a card for each of the ten claims that are decided, and two derivations


def test_the_ledger_shows_every_verdict(outside):
    ledger = page(outside, "ledger")
    badges = Counter(badge.get_text() for badge in ledger.select(".claim-entry .verdict-badge"))
    assert badges == dict(zip(VERDICTS, [3, 2, 1, 1, 2, 1, 1], strict=True))
    assert [h.get_text().rstrip("#") for h in ledger.select("article h2")] == [
        *(f"Sheet, part {n}" for n in (1, 2, 3)),
        "Our own statements",
    ]
    own = ledger.select_one("#ledger-sheet-practice")
    assert own.select_one(".verdict-observed.verdict-measured")  # a verdict of the book's own has the look of its kind
    assert "supported" in own.get_text()
    assert "matter of taste" in ledger.select_one("#ledger-sheet-natural").get_text()


def test_the_front_page_counts_the_verdicts(outside):
    rows = [row.get_text(" ", strip=True) for row in page(outside, "intro").select(".verdict-summary tbody tr")]
    counted = [(row.rpartition(" ")[2], next(v for v in VERDICTS if row.startswith(v))) for row in rows]
    assert counted == list(zip("3211211", VERDICTS, strict=True))


def test_the_chapter_has_a_card_for_each_decided_claim(outside):
    cards = page(outside, CHAPTER).select("details.claim-card")
    assert len(cards) == 10 and all(card.select(".claim-evidence li") for card in cards)
    assert {card.select_one(".claim-verdict").get_text() for card in cards} == {*VERDICTS} - {"left open"}
    (observed,) = page(outside, CHAPTER).select("details.claim-card.verdict-observed")
    assert "verdict-measured" in observed["class"]
    assert "Sheet, part 3, sentence by sentence" in observed.get_text()


def test_errata_and_coverage_are_filled(outside):
    errata = page(outside, "errata")
    assert [h.get_text().rstrip("#") for h in errata.select("article h2")] == [
        "False statements",
        "Assumptions that are left out",
        "Slips of the pen",
    ]
    assert (
        "Sheet, part 1, paragraph 3, sentence 2" in errata.get_text() and "the sentence requires" in errata.get_text()
    )
    coverage = page(outside, "coverage")
    rows = [row.get_text(" ", strip=True) for row in coverage.select(".coverage-table tbody tr")]
    assert len(rows) == 14 and all(row.endswith((*VERDICTS, "motivation", "assumption", "p2 s2")) for row in rows)
    links = coverage.select("#all-equations > p a.reference")
    assert [link.get_text() for link in links] == [f"(S.{n})" for n in (1, 2, 3, 4)]
    assert "Part of the source" in coverage.get_text()  # the book's own word for a section


def test_every_link_leads_somewhere(outside):
    site = outside.book / "_build" / "html"
    names = ["intro", "sheet", CHAPTER, "ledger", "errata", "coverage"]
    pages = {(site / f"{name}.html").resolve(): page(outside, name) for name in names}
    ids = {path: {tag["id"] for tag in soup.select("[id]")} for path, soup in pages.items()}
    links = [(path, a["href"]) for path, soup in pages.items() for a in soup.select("article a[href]")]
    local = [(path, *href.partition("#")[::2]) for path, href in links if not href.startswith("http")]
    assert len(local) > 60
    for path, file, anchor in local:
        target = (path.parent / file.partition("?")[0]).resolve() if file else path
        assert target.is_file(), f"{path.name}: {file}"
        assert not anchor or target not in ids or anchor in ids[target], f"{path.name}: {file}#{anchor}"


def test_the_scripts_and_style_sheets_are_in_the_site(outside):
    static = outside.book / "_build" / "html" / "_static"
    loaded = {tag.get("src") or tag.get("href") for tag in page(outside, "ledger").select("script[src], link[href]")}
    for name in ("verdicts.css", "claim_filter.css", "claim_filter.js", "formula_text.js", "derivations.js"):
        assert (static / name).is_file() and any(name in address for address in loaded), name


def test_the_book_is_audited(outside):
    assert succeeded(outside.run("-m", "linewise", ".")).strip() == (
        "3 proved, 2 confirmed, 1 defined, 1 observed, 2 amended, 1 refuted, 1 left open\n"
        "10 of the 10 claims to check have been checked"
    )


def without_its_check(book: Path) -> None:
    path = book / f"{CHAPTER}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    notebook["cells"] = [c for c in notebook["cells"] if 'claims["sheet/trace"]' not in "".join(c["source"])]
    path.write_text(json.dumps(notebook), encoding="utf-8")


def without_a_row(book: Path) -> None:
    table = book / "sources" / "sheet.yml"
    table.write_text(re.sub(r".*sheet\.1 p3 s2.*\n", "", table.read_text(encoding="utf-8")), encoding="utf-8")


def with_a_link_to_nothing(book: Path) -> None:
    sheet = book / "sheet.md"
    sheet.write_text(sheet.read_text(encoding="utf-8") + "\nSee sheet, part 7.\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (without_its_check, "least_squares.claims.yml: sheet/trace: expected one executed check, found 0"),
        (without_a_row, "sheet.1 p3 s2: no row"),
        (with_a_link_to_nothing, "sheet.md: no part 7 of the sheet"),
    ],
)
def test_a_spoilt_copy_is_refused(outside, tmp_path, spoil: Callable[[Path], None], words: str):
    copy = shutil.copytree(outside.book, tmp_path / "copy", ignore=BUILT)
    spoil(copy)
    done = outside.run("-m", "linewise", ".", at=copy)
    assert done.returncode == 1 and f"problem: {words}" in done.stdout, done.stdout + done.stderr
