// Bootstrap's scroll spy follows the table of contents of a page. Where a page has none, it takes every link of the
// page instead, and stumbles over anchors with a dot, such as #equation-5.1.5. It starts after this, on "load".
document.addEventListener("DOMContentLoaded", () => {
  if (!document.querySelector(".bd-toc-nav")) document.body.removeAttribute("data-bs-spy");
});

// A link to a card, or to anything inside something folded, unfolds what it leads to.
function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target?.closest("details")) return;
  for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
  target.scrollIntoView();
}

// A derivation has its reasons at the right of its lines, or under them where there is not room for both.
// All are measured before any is changed: a browser lays out a long page anew after each change.
function arrange() {
  const narrow = matchMedia("(max-width: 720px)").matches;
  const tooWide = (e) => e.scrollWidth > e.clientWidth + 1;
  const blocks = [...document.querySelectorAll(".derivation")];
  for (const block of blocks) block.classList.remove("stacked");
  const crowded = blocks.map((block) => [block, ...block.querySelectorAll(".line > span")].some(tooWide));
  blocks.forEach((block, i) => block.classList.toggle("stacked", narrow || crowded[i]));
}

addEventListener("hashchange", unfold);
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise; // typeset formulas move what lies below them
  await document.fonts.ready;
  unfold();
  const article = document.querySelector(".bd-article");
  let width = 0;
  new ResizeObserver(([entry]) => {
    if (entry.contentRect.width === width) return;
    width = entry.contentRect.width;
    requestAnimationFrame(arrange);
  }).observe(article ?? document.body);
});
