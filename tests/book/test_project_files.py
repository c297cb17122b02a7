"""What a visitor of the repository meets: one version, forms, hooks, and notebooks that can be compared."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import readable_notebook
import stamps
import version

PROJECT = tomllib.loads((stamps.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(name: str) -> dict:
    return yaml.safe_load((stamps.ROOT / name).read_text(encoding="utf-8"))


# --- one version ------------------------------------------------------------------------------------


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for place in version.PLACES:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(stamps.ROOT / place, tmp_path / place)
    return tmp_path


def pinned_twice(pins: str) -> list[str]:
    """Return the libraries that have more than one version in a list of pins: outputs would depend on the Python."""
    names = re.findall(r"^([\w.-]+)==", pins, re.MULTILINE)
    return sorted({name for name in names if names.count(name) > 1})


def test_every_python_gets_the_same_libraries() -> None:
    assert pinned_twice((stamps.ROOT / "constraints.txt").read_text(encoding="utf-8")) == []
    old, new = "numpy==2.4.6 ; python_full_version < '3.12'", "numpy==2.5.5 ; python_full_version >= '3.12'"
    assert pinned_twice(f"{old}\n{new}\nscipy==1.17.1\n") == ["numpy"]


def test_every_place_says_the_same_version() -> None:
    assert version.faults() == [] and version.faults(tag=f"v{PROJECT['version']}") == []


@pytest.mark.parametrize("place", version.PLACES)
def test_another_version_is_noticed(place: str, copied: Path) -> None:
    text = (copied / place).read_text(encoding="utf-8")
    (copied / place).write_text(text.replace(PROJECT["version"], "9.9.9", 1), encoding="utf-8")
    assert any("9.9.9" in fault for fault in version.faults(copied))


def test_another_tag_day_or_nothing_at_all_is_noticed(copied: Path, monkeypatch, capsys) -> None:
    assert version.faults(copied, "v0.0.1") == [f"tag: expected v{PROJECT['version']}, got v0.0.1"]
    cited = (copied / "CITATION.cff").read_text(encoding="utf-8")
    (copied / "CITATION.cff").write_text(re.sub(r"(date-released: ).*", r'\1"1999-01-01"', cited), encoding="utf-8")
    assert len(version.faults(copied)) == 1 and "day of the version" in version.faults(copied)[0]
    (copied / "CITATION.cff").write_text("", encoding="utf-8")
    assert any("CITATION.cff: expected the version" in fault for fault in version.faults(copied))
    monkeypatch.setattr(version, "ROOT", stamps.ROOT)
    assert version.main(["v0.0.1"]) == 1 and "got v0.0.1" in capsys.readouterr().err


def test_the_citation_has_what_its_readers_need() -> None:
    cited = read("CITATION.cff")
    assert cited["cff-version"] == "1.2.0" and {"title", "message", "authors", "license"} <= set(cited)
    assert (
        cited["url"]
        == PROJECT["urls"]["Homepage"]
        == cited["repository-code"]
        == read("_config.yml")["repository"]["url"]
    )


# --- forms, updates, hooks --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form", sorted((stamps.ROOT / ".github" / "ISSUE_TEMPLATE").glob("a-*.yml")), ids=lambda p: p.name
)
def test_a_form_can_be_shown(form: Path) -> None:
    """What GitHub asks of a form: a name, a description, and fields with ids of their own and labels."""
    found = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert found["name"] and found["description"]
    ids = [field["id"] for field in found["body"]]
    assert len(set(ids)) == len(ids) and all(re.fullmatch(r"[\w-]+", one) for one in ids)
    assert all(field["type"] in ("input", "textarea") and field["attributes"]["label"] for field in found["body"])
    assert any(field["validations"]["required"] for field in found["body"])


def test_the_form_for_a_wrong_claim_asks_for_an_instance_and_the_source() -> None:
    form = read(".github/ISSUE_TEMPLATE/a-claim-is-wrong.yml")
    assert [field["id"] for field in form["body"]] == ["place", "wrong", "instance", "source", "version"]


def test_updates_stay_below_the_bounds_of_the_project() -> None:
    pip, actions = read(".github/dependabot.yml")["updates"]
    assert (pip["package-ecosystem"], actions["package-ecosystem"]) == ("pip", "github-actions")
    held = {one["dependency-name"]: one.get("versions", ["all"])[0] for one in pip["ignore"]}
    bounds = [re.fullmatch(r"([\w-]+).*<([\d.]+)", one) for one in PROJECT["optional-dependencies"]["book"]]
    assert {one[1]: f">={one[2]}" for one in bounds if one}.items() <= held.items()
    assert {"jupyter-book", "sphinx-book-theme", "pydata-sphinx-theme", "sphinx"} <= set(held)


def test_hooks_are_local_and_ask_for_nothing_but_the_environment() -> None:
    repositories = read(".pre-commit-config.yaml")["repos"]
    assert [one["repo"] for one in repositories] == ["local"]
    for hook in repositories[0]["hooks"]:
        assert hook["language"] == "system" and hook["entry"].startswith(".venv/bin/python ")
        assert all((stamps.ROOT / path).is_file() for path in re.findall(r"\S+/\S+\.py", hook["entry"]))


def test_the_check_of_links_leaves_out_what_it_says() -> None:
    left_out = read("_config.yml")["sphinx"]["config"]["linkcheck_ignore"]
    addresses = ("https://doi.org/10.1/x", "https://github.com/attention-checked/a", "http://127.0.0.1:8000")
    assert [bool(re.match(one, address)) for one, address in zip(left_out, addresses, strict=True)] == [True] * 3
    assert not any(re.match(one, "https://arxiv.org/abs/1706.03762") for one in left_out)


# --- notebooks that can be compared -----------------------------------------------------------------

PICTURE = "iVBORw0KGgo" * 1000


def notebook(source: str = "1 + 1", picture: str = PICTURE) -> str:
    data = {"image/png": picture, "text/html": ["<b>", "2</b>"], "text/plain": "2"}
    outputs = [{"output_type": "stream", "name": "stdout", "text": ["two", "\n"]},
               {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": 1},
               {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["x"]}]  # fmt: skip
    cells = [{"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "text"]},
             {"cell_type": "code", "metadata": {"tags": ["a"]}, "source": source, "outputs": outputs}]  # fmt: skip
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def test_a_notebook_is_readable() -> None:
    found = readable_notebook.readable(notebook())
    assert found.splitlines()[:6] == ["=== 1: markdown", "# Title", "text", "", '=== 2: code {"tags": ["a"]}', "1 + 1"]
    assert "--- text/plain\n2\n" in found and "--- stdout\ntwo\n" in found and "--- error ValueError: no" in found
    assert len(found) < 500 and "iVBOR" not in found and "<b>" not in found


@pytest.mark.parametrize("spoilt", [notebook(source="1 + 2"), notebook(picture=PICTURE + "A")])
def test_a_change_of_a_source_or_a_picture_is_seen(spoilt: str) -> None:
    assert readable_notebook.readable(spoilt) != readable_notebook.readable(notebook())


@pytest.mark.parametrize("text", ["no notebook", "[]", "{}"])
def test_what_is_no_notebook_comes_back(text: str) -> None:
    assert readable_notebook.readable(text) == text


def test_git_shows_a_change_of_a_notebook_in_readable_form(tmp_path: Path) -> None:
    def git(*line: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        return subprocess.run(["git", *who, *line], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    shutil.copy(stamps.ROOT / ".gitattributes", tmp_path)
    git("init", "-q")
    (tmp_path / "a.ipynb").write_text(notebook(), encoding="utf-8")
    git("add", "."), git("commit", "-qm", "first")
    (tmp_path / "a.ipynb").write_text(notebook("1 + 2", PICTURE[:-1]), encoding="utf-8")
    command = f'"{sys.executable}" "{stamps.ROOT / "tools" / "readable_notebook.py"}"'
    assert "iVBOR" in git("diff")
    shown = git("-c", f"diff.notebook.textconv={command}", "diff")
    assert "\n-1 + 1\n+1 + 2\n" in shown and "iVBOR" not in shown and shown.count("image/png") == 2
    assert "git config diff.notebook.textconv" in (stamps.ROOT / "Makefile").read_text(encoding="utf-8")
