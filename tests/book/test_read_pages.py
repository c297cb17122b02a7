"""The pages to read along follow their sources: every claim is marked, every equation shown, and nothing is long."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from linewise.conventions import conventions_of
from linewise.ledger import Claim, collate
from linewise.ledger.coverage import Source, read_sources
from linewise.ledger.read_along import Passage, faults_of, passages
from linewise.pages.reading_time import words_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = {source.read: source.table for source in conventions_of(ROOT).sources if source.read}
#: So many words a page may have, and so many Chinese characters a quotation.
WORDS, QUOTED = 2500, 20
HAN = re.compile(r"[\u3400-\u9fff]")


@cache
def claims() -> tuple[Claim, ...]:
    return tuple(row.claim for row in collate(ROOT))


@cache
def source_of(page: str) -> Source:
    tables = dict.fromkeys(source.table for source in conventions_of(ROOT).sources)
    return dict(zip(tables, read_sources(ROOT), strict=True))[PAGES[page]]


def text_of(page: str) -> str:
    return (ROOT / f"{page}.md").read_text(encoding="utf-8")


def faults(page: str, text: str) -> list[str]:
    return list(faults_of(text, source_of(page), claims()))


def too_long(text: str) -> bool:
    return words_of(text) > WORDS


def unquoted(passage: Passage) -> list[str]:
    """Return the claims whose box does not begin with words or a formula of the source, or quotes at length."""
    quoted = {name: re.match("“([^”]+)”: ", said) for name, said in passage.instead.items()}
    counts = {name: len(HAN.findall(found[1])) if found else QUOTED + 1 for name, found in quoted.items()}
    return [name for name, han in counts.items() if han > QUOTED or not (han >= 3 or "$" in passage.instead[name])]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_marks_its_source(page: str) -> None:
    assert faults(page, text_of(page)) == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_read_in_an_evening(page: str) -> None:
    assert not too_long(text_of(page))
    assert too_long(text_of(page) + " one more word" * WORDS)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_quotes_the_words_that_do_not_hold(page: str) -> None:
    assert [name for passage in passages(text_of(page)) for name in unquoted(passage)] == []
    spoilt = re.sub(r"(\{instead\} \S+\n)[^:]*: ", r"\1", text_of(page), count=1)
    assert [name for passage in passages(spoilt) for name in unquoted(passage)] != []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_the_opening_words_of_its_paragraphs_and_no_code(page: str) -> None:
    text = text_of(page)
    assert [passage.place for passage in passages(text) if not passage.opening] == []
    assert not re.search(r"^```(?!\{)\w|\{code", text, re.MULTILINE)


# --- spoilt copies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_a_claim_that_is_not_marked_is_noticed(page: str) -> None:
    """Of each claim of the source, undecided ones too, the marks are taken out."""
    text, sections = text_of(page), source_of(page).shape
    here = [claim.id for claim in claims() if any(place.split()[0] in sections for place in claim.places)]
    for name in here:
        assert f"no mark of {name}" in "\n".join(faults(page, text.replace(f"{{mark}}`{name}`", ""))), name


@pytest.mark.parametrize("page", PAGES)
def test_a_mark_at_another_paragraph_is_noticed(page: str) -> None:
    """Each mark is moved to the paragraph before, as far as the claim has no place there."""
    text, here = text_of(page), passages(text_of(page))
    by_id = {claim.id: claim for claim in claims()}
    for before, passage in pairwise(here):
        place = f"{{paragraph}} {before.place} {before.opening}\n"
        for name in passage.marks:
            if before.place not in (" ".join(at.split()[:2]) for at in by_id[name].places):
                spoilt = text.replace(place, f"{place}{{mark}}`{name}` ")
                assert f"{before.place}: a mark of {name}, which is a claim of" in "\n".join(faults(page, spoilt))


@pytest.mark.parametrize("page", PAGES)
def test_a_mark_of_another_source_is_noticed(page: str) -> None:
    sections = source_of(page).shape
    other = next(claim for claim in claims() if not any(place.split()[0] in sections for place in claim.places))
    mark = re.search(r"\{mark\}`[^`]+`", text_of(page))
    assert mark is not None
    spoilt = text_of(page).replace(mark[0], f"{{mark}}`{other.id}`", 1)
    assert f"a mark of {other.id}, which is a claim of" in "\n".join(faults(page, spoilt))


@pytest.mark.parametrize("page", PAGES)
def test_an_equation_that_is_not_shown_is_noticed(page: str) -> None:
    numbers = [number for row in source_of(page).rows for number in row.equations]
    for number in numbers:
        spoilt = text_of(page).replace(f"{{numbered}} {number}\n", "{numbered} 0.0\n")
        assert f"does not show equation ({number})" in "\n".join(faults(page, spoilt)), number


@pytest.mark.parametrize("page", PAGES)
def test_a_correction_that_is_left_out_is_noticed(page: str) -> None:
    corrected = [(passage.place, name) for passage in passages(text_of(page)) for name in passage.instead]
    assert corrected
    for place, name in corrected:
        spoilt = text_of(page).replace(f"{{instead}} {name}\n", "{admonition} Note\n")
        assert any(fault.startswith(f"{place}: {name} is ") for fault in faults(page, spoilt)), name
