"""What is demanded of the built site. Each check takes a page and returns what is wrong with it."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

#: Pages that Sphinx makes; everything else was written by somebody.
GENERATED = {"index.html", "genindex.html", "search.html", "prf-prf.html"}
_FETCHING_RELS = {
    "stylesheet",
    "icon",
    "preload",
    "prefetch",
    "modulepreload",
    "manifest",
    "preconnect",
    "dns-prefetch",
}
_FETCHING_ATTRIBUTES = {
    "script": ["src"], "img": ["src", "srcset"], "source": ["src", "srcset"], "iframe": ["src"], "embed": ["src"],
    "audio": ["src"], "video": ["src", "poster"], "track": ["src"], "object": ["data"], "image": ["href", "xlink:href"],
    "use": ["href", "xlink:href"], "input": ["src"],
}  # fmt: skip


def parse(html: str) -> BeautifulSoup:
    """Return the parsed page."""
    return BeautifulSoup(html, "html.parser")


#: What is inside of a formula, and the tokens of code that hold nothing but text.
_LEAVES = re.compile(r'(<math\b[^>]*>).*?(</math>)|<span class="\w{1,3}">([^<]*)</span>', re.DOTALL)


def parse_frame(html: str) -> BeautifulSoup:
    """Return the parsed page with empty formulas and plain code: a third of the elements, and all links and ids.

    >>> parse_frame('<p id="a"><math><mi>x</mi></math> <a href="b"><span class="k">if</span></a></p>').decode()
    '<p id="a"><math></math> <a href="b">if</a></p>'
    """
    return parse(_LEAVES.sub(lambda m: (m[1] or "") + (m[2] or "") + (m[3] or ""), html))


def is_external(address: str) -> bool:
    """Return whether a browser leaves the site to fetch this address."""
    address = address.strip()
    return address.startswith("//") or bool(re.match(r"(?i)(https?|ftp|wss?):", address))


def external_in_css(css: str) -> list[str]:
    """Return the addresses of other hosts that a style sheet fetches."""
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    found = re.findall(r"""url\(\s*(?:"([^"]*)"|'([^']*)'|([^)'"]*))\s*\)""", css)
    found += re.findall(r"""@import\s+(?:"([^"]*)"|'([^']*)'|(\S+))""", css)
    return [address for group in found for address in group if is_external(address)]


def external_fetches(page: BeautifulSoup) -> list[str]:
    """Return the addresses of other hosts that a browser fetches when it opens a page."""
    found = list(_fetched(page))
    for style in page.find_all("style"):
        found += external_in_css(style.get_text())
    for element in page.find_all(style=True):
        found += external_in_css(str(element["style"]))
    for script in page.find_all("script", src=False):
        found += re.findall(r"https?://[^\s\"'`]+", script.get_text())
    return found


def _fetched(page: BeautifulSoup) -> Iterator[str]:
    for name, attributes in _FETCHING_ATTRIBUTES.items():
        for element in page.find_all(name):
            for attribute in attributes:
                for address in re.split(r",\s+|\s+", str(element.get(attribute) or "")):
                    if is_external(address):
                        yield address
    for link in page.find_all("link", href=True):
        if _FETCHING_RELS & {str(rel).lower() for rel in link.get("rel") or []} and is_external(str(link["href"])):
            yield str(link["href"])
    for meta in page.find_all("meta", attrs={"http-equiv": re.compile("refresh", re.I)}):
        target = str(meta.get("content", "")).partition("=")[2]
        if is_external(target):
            yield target


#: Settings that hold addresses of other hosts because the page links to them, and fetches nothing.
_LINKS = ("repository.url", "launch_buttons.binderhub_url")
#: Services of Jupyter Book that load scripts of other hosts.
_SERVICES = ("html.comments", "html.google_analytics_id", "html.analytics")


def external_settings(config: object, name: str = "") -> list[str]:
    """Return the settings of `_config.yml` that would make a page fetch something from another host."""
    if isinstance(config, dict):
        found = [f"{name}: {config}"] if name in _SERVICES else []
        return found + [
            f for key, value in config.items() for f in external_settings(value, f"{name}.{key}".lstrip("."))
        ]
    if isinstance(config, list | tuple):
        return [fault for value in config for fault in external_settings(value, name)]
    fetched = isinstance(config, str) and (is_external(config) or external_fetches(parse(config)))
    if name not in _LINKS and (fetched or (name.startswith(_SERVICES) and config)):
        return [f"{name}: {config}"]
    return []


_TELLING = re.compile(r"(?is)<(?:style|script)\b.*?</(?:style|script)>|<(?!\?)[^<>]*(?://|https?:|ftp:|wss?:)[^<>]*>")


def external_in_svg(svg: str) -> list[str]:
    """Return the addresses of other hosts that a picture loads."""
    sheets = re.findall(r"<\?xml-stylesheet[^>]*href=[\"']([^\"']+)", svg)
    # Of its thousands of elements, those that could name another host.
    drawing = parse("".join(found[0] for found in _TELLING.finditer(svg)))
    return external_fetches(drawing) + [address for address in sheets if is_external(address)]


def ids_of(page: BeautifulSoup) -> Counter[str]:
    """Return how often each id occurs on a page."""
    return Counter(str(element["id"]) for element in page.find_all(id=True))


def repeated_ids(page: BeautifulSoup) -> list[str]:
    """Return the ids that occur more than once."""
    return [name for name, count in ids_of(page).items() if count > 1]


@cache
def _file(page: Path, path: str) -> Path | None:
    target = Path(os.path.normpath(page.parent / path)) if path else page  # one path for a file: callers remember it
    return target if target.is_file() else None


def broken_links(name: str, page: BeautifulSoup, site: Path, ids: Callable[[Path], Counter[str]]) -> list[str]:
    """Return the internal links, images and scripts of a page that lead nowhere.

    `name` is the page's path in the site; `ids(path)` gives the ids of another page.
    """
    problems = []
    for element, attribute in [("a", "href"), ("link", "href"), ("img", "src"), ("script", "src")]:
        for found in page.find_all(element, **{attribute: True}):
            address = str(found[attribute])
            if is_external(address) or re.match(r"(?i)(mailto|data|javascript):", address):
                continue
            parts = urlsplit(address)
            target = _file(site / name, unquote(parts.path))
            fragment = unquote(parts.fragment)
            if target is None:
                problems.append(f"{address}: no such file")
            elif element == "a" and fragment and target.suffix == ".html" and not ids(target)[fragment]:
                problems.append(f"{address}: no such anchor")
    return problems


def article(page: BeautifulSoup) -> Tag:
    """Return the part of a page that somebody wrote."""
    found = page.find(class_="bd-article")
    assert isinstance(found, Tag), "a page without an article"
    return found


def poor_alt_texts(page: BeautifulSoup) -> list[str]:
    """Return the images whose alt text does not say what one sees: a sentence, not a slug or a file name."""
    problems = []
    for image in article(page).find_all("img"):
        alt, source = str(image.get("alt") or "").strip(), str(image.get("src"))
        slug = " " not in alt or bool(re.search(r"\.(png|svg|jpe?g|gif)\b|^_images/|[\\/]_images", alt))
        if len(alt) < 40 or slug:
            problems.append(f"{source}: alt text {alt!r}")
    return problems


def uncaptioned_figures(page: BeautifulSoup) -> list[str]:
    """Return the images and figures that nobody gave a caption, or a name to refer to."""
    problems = []
    for image in article(page).find_all("img"):
        drawn = image.find_parent(class_="gallery-drawn")  # in the gallery the words stand below the picture
        words = drawn.find("p", recursive=False) if isinstance(drawn, Tag) else None
        if image.find_parent("figure") is None and (words is None or len(words.get_text(strip=True)) < 10):
            problems.append(f"{image.get('src')}: an image outside a figure")
    for figure in article(page).find_all("figure"):
        caption = figure.find("figcaption")
        text = caption.find(class_="caption-text") if isinstance(caption, Tag) else None
        if text is None or len(text.get_text(strip=True)) < 10:
            problems.append(f"{figure.get('id')}: no caption")
        if re.fullmatch(r"(id\d+)?", str(figure.get("id") or "")):
            problems.append(f"{figure.find('img')}: no name")
    return problems


def tagged_equations(page: BeautifulSoup) -> list[str]:
    """Return the numbers of the equations of a page."""
    numbers = article(page).select("div.math > .eqno")
    return [number for block in numbers for number in re.findall(r"\(([^()]+)\)", block.get_text())]


def unanchored_equations(name: str, page: BeautifulSoup, index: BeautifulSoup) -> list[str]:
    """Return the equations without an anchor, or without an entry in the index that leads to it."""
    entries = {str(a["href"]): a.get_text() for a in index.find_all("a", href=True)}
    problems = []
    for number in tagged_equations(page):
        anchor = f"equation-{number}"
        if not ids_of(page)[anchor]:
            problems.append(f"({number}): no anchor {anchor}")
        if entries.get(f"{name}#{anchor}") != f"({number})":
            problems.append(f"({number}): no index entry that leads to {name}#{anchor}")
    return problems


def wrong_buttons(name: str, page: BeautifulSoup, repository: dict[str, str], launch: dict[str, str]) -> list[str]:
    """Return what is wrong with the links to the repository and to the machines that run notebooks."""
    hrefs = [str(a["href"]) for a in page.select(".article-header-buttons a[href]")]
    url, branch = repository["url"].rstrip("/"), repository["branch"]
    owner = urlsplit(url).path.strip("/")
    source = name.removesuffix(".html")
    wanted = [url, f"{url}/issues/new"]
    if (name not in GENERATED) and (links := page.select(".article-header-buttons a.btn-download-source-button")):
        source = str(links[0]["href"]).rpartition("_sources/")[2]
        wanted.append(f"{url}/edit/{branch}/{source}")
        if source.endswith(".ipynb"):
            wanted.append(f"{launch['binderhub_url']}/v2/gh/{owner}/{branch}?urlpath=lab/tree/{source}")
    problems = [f"no button leads to {w}" for w in wanted if not any(h == w or h.startswith(w + "?") for h in hrefs)]
    hosts = (url, launch["binderhub_url"])
    problems += [f"a button leads to {h}" for h in hrefs if is_external(h) and not h.startswith(hosts)]
    return problems + [f"{h}: not this repository" for h in hrefs if is_external(h) and owner not in h]


def poor_frame(page: BeautifulSoup, title: str, author: str) -> list[str]:
    """Return what is missing of the frame: language, title, icon, viewport, author and licences."""
    shown = page.title.get_text(strip=True) if page.title else ""
    footer = page.find("footer", class_="bd-footer-content")
    text = footer.get_text(" ", strip=True) if isinstance(footer, Tag) else ""
    head = {
        "language": bool(page.html and page.html.get("lang") == "en"),
        "title": title in shown and "\\(" not in shown,
        "favicon": page.find("link", rel="icon", href=True) is not None,
        "viewport": page.find("meta", attrs={"name": "viewport"}) is not None,
        "author": author in text,
        "licences": "MIT" in text and "CC BY 4.0" in text,
    }
    return [f"no {what}" for what, there in head.items() if not there]


def unlinked_claims(page: BeautifulSoup, addresses: list[str]) -> list[str]:
    """Return the addresses of cards that a page does not link to."""
    links = {str(a["href"]) for a in article(page).select("a.claim-link")}
    return [f"no link to {address}" for address in addresses if address not in links]


def poor_descriptions(page: BeautifulSoup) -> list[str]:
    """Return what is wrong with the description of a page: none, too short to say anything, or marks of TeX in it."""
    said = [str(meta["content"]) for meta in page.select('meta[name="description"]')]
    if len(said) != 1:
        return [f"{len(said)} descriptions"]
    return [f"the description is {text!r}" for text in said if len(text) < 40 or "\\" in text or "$" in text]


def small_figures(page: BeautifulSoup) -> list[str]:
    """Return the figures that are no vector graphics, or that do not open alone when one clicks on them."""
    problems = []
    for image in article(page).select("figure img"):
        source = str(image["src"])
        link = image.find_parent("a")
        if not source.endswith(".svg"):
            problems.append(f"{source}: not a vector graphic")
        if not isinstance(link, Tag) or link.get("href") != source:
            problems.append(f"{source}: no link to it")
    return problems
