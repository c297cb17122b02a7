"""The workflows prove the book on every supported Python, with few rights and with actions that cannot change."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml

import stamps

WORKFLOWS = {path.name: path.read_text("utf-8") for path in sorted((stamps.ROOT / ".github/workflows").glob("*.yml"))}
#: The rights of jobs that have more, or others, than to read the repository.
RIGHTS = {
    "book.yml": {"publish": {"pages": "write", "id-token": "write"}},
    "release.yml": {"publish": {"contents": "write"}, "index": {"id-token": "write"}},
}


def movable(workflow: str) -> list[str]:
    """Return the actions that are pinned to a tag or a branch, and not to a commit."""
    return [used for used in re.findall(r"uses:\s*(\S+)", workflow) if not re.search(r"@[0-9a-f]{40}$", used)]


def rights(workflow: dict[str, Any]) -> dict[str, Any]:
    """Return the rights of each job that has more, or others, than to read the repository."""
    jobs = {name: job.get("permissions", workflow.get("permissions")) for name, job in workflow["jobs"].items()}
    return {name: given for name, given in jobs.items() if given != {"contents": "read"}}


def unknown(workflow: str) -> list[str]:
    """Return the commands of the Makefile and the tools that a workflow calls, and that are not there."""
    makefile = (stamps.ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [f"make {name}" for name in re.findall(r"run: make ([\w-]+)", workflow)
               if not re.search(rf"^{name}:", makefile, re.MULTILINE)]  # fmt: skip
    paths = re.findall(r"(?:run: (?:python3 )?|\. \./)((?:tools|\.ci|binder)/[\w./-]+)", workflow)
    return targets + [path for path in paths if not (stamps.ROOT / path).is_file()]


def test_there_is_a_workflow_for_each_purpose() -> None:
    assert set(WORKFLOWS) == {"binder.yml", "book.yml", "links.yml", "preview.yml", "print.yml", "release.yml"}


def test_every_supported_python_is_proved() -> None:
    job = yaml.safe_load(WORKFLOWS["book.yml"])["jobs"]["prove"]
    pythons = job["strategy"]["matrix"]["python"]
    environment = (stamps.ROOT / "tools" / "environment.sh").read_text(encoding="utf-8")
    bounds = [int(minor) for minor in re.search(r"\(3, (\d+)\) <= v <= \(3, (\d+)\)", environment).groups()]
    assert pythons == [f"3.{minor}" for minor in range(bounds[0], bounds[1] + 1)]
    assert "${{ matrix.python }}" in job["container"]
    project = tomllib.loads((stamps.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == f">={pythons[0]}"
    prefix = "Programming Language :: Python :: 3."
    assert [f"3.{one.removeprefix(prefix)}" for one in project["classifiers"] if one.startswith(prefix)] == pythons


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_is_pinned_limited_and_calls_what_is_there(name: str) -> None:
    workflow = yaml.safe_load(WORKFLOWS[name])
    assert movable(WORKFLOWS[name]) == [] and unknown(WORKFLOWS[name]) == []
    assert rights(workflow) == RIGHTS.get(name, {})
    assert "secrets." not in WORKFLOWS[name] and "pull_request_target" not in WORKFLOWS[name]
    assert all(job.get("timeout-minutes") or (job["runs-on"] and "needs" in job) for job in workflow["jobs"].values())


def test_what_is_published_is_what_was_made_and_checked() -> None:
    jobs = yaml.safe_load(WORKFLOWS["release.yml"])["jobs"]
    assert "make release" in str(jobs["make"]) and jobs["make"]["steps"][-1]["with"]["path"] == "_build/release"
    for name in ("publish", "index"):
        uses = [step["uses"].partition("@")[0] for step in jobs[name]["steps"] if "uses" in step]
        assert uses[0] == "actions/download-artifact" and "actions/checkout" not in uses
        assert "sha256sum --check --strict" in str(jobs[name]["steps"])


@pytest.mark.parametrize("action", ["actions/checkout@v4", "actions/checkout@main", "actions/cache@5a3ec84"])
def test_a_movable_action_is_noticed(action: str) -> None:
    assert movable(f"steps:\n  - uses: {action} # why\n") == [action]


def test_more_rights_are_noticed() -> None:
    workflow = yaml.safe_load(WORKFLOWS["book.yml"].replace("contents: read", "contents: write"))
    assert rights(workflow)["prove"] == {"contents": "write"}
    del workflow["permissions"]
    assert rights(workflow)["prove"] is None


def test_a_command_that_is_not_there_is_noticed() -> None:
    there = "- run: make book\n- run: .ci/run\n- run: r2d . ./binder/run_chapters\n"
    found = unknown(f"{there}- run: make books\n- run: python3 tools/none.py v1\n- run: r2d . ./binder/none\n")
    assert found == ["make books", "tools/none.py", "binder/none"]
