"""The workflow proves the book on every supported Python, with few rights and with actions that cannot change."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml

import stamps

WORKFLOWS = stamps.ROOT / ".github" / "workflows"
TEXT = (WORKFLOWS / "book.yml").read_text(encoding="utf-8")


def movable(workflow: str) -> list[str]:
    """Return the actions that are pinned to a tag or a branch, and not to a commit."""
    return [used for used in re.findall(r"uses:\s*(\S+)", workflow) if not re.search(r"@[0-9a-f]{40}$", used)]


def rights(workflow: dict[str, Any]) -> dict[str, Any]:
    """Return the rights of each job that has more, or others, than to read the repository."""
    jobs = {name: job.get("permissions", workflow.get("permissions")) for name, job in workflow["jobs"].items()}
    return {name: given for name, given in jobs.items() if given != {"contents": "read"}}


def test_every_supported_python_is_proved() -> None:
    supported = tomllib.loads((stamps.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "requires-python"
    ]
    job = yaml.safe_load(TEXT)["jobs"]["prove"]
    pythons = job["strategy"]["matrix"]["python"]
    first, last = pythons[0], int(pythons[-1].partition(".")[2])
    assert supported == f">={first},<3.{last + 1}"
    assert pythons == [f"3.{minor}" for minor in range(int(first.partition(".")[2]), last + 1)]
    assert "${{ matrix.python }}" in job["container"]


def test_actions_are_pinned_to_commits() -> None:
    assert movable(TEXT) == []


@pytest.mark.parametrize("action", ["actions/checkout@v4", "actions/checkout@main", "actions/cache@5a3ec84"])
def test_a_movable_action_is_noticed(action: str) -> None:
    assert movable(f"steps:\n  - uses: {action} # why\n") == [action]


def test_only_publishing_has_more_rights_than_to_read() -> None:
    assert rights(yaml.safe_load(TEXT)) == {"publish": {"pages": "write", "id-token": "write"}}


def test_more_rights_are_noticed() -> None:
    workflow = yaml.safe_load(TEXT.replace("contents: read", "contents: write"))
    assert rights(workflow)["prove"] == {"contents": "write"}
    del workflow["permissions"]
    assert rights(workflow)["prove"] is None
