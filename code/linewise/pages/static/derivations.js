(() => {
  "use strict";

  // A link to a card, to a folded section, or to anything inside something folded unfolds what it leads to.
  function unfold() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const section = target?.matches("section > span[id]") ? target.parentElement : target;
    const below = section?.matches("section") && section.querySelector(":scope > details.further");
    if (below) below.open = true;
    else if (!target?.closest("details")) return;
    for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    target.scrollIntoView();
  }

  // A derivation has its reasons at the right of its lines, or under them where there is not room for both.
  // All are measured before any is changed: a browser lays out a long page anew after each change. What is folded or far
  // from the window is not laid out, and is not measured either, which would be to lay it out.
  // (checkVisibility would ask for the styles of all of it.)
  const isLaidOut = (e) => !e.closest(".bd-article > section > section:not(.near), details:not([open])");
  function arrange(all) {
    const blocks = all.filter(isLaidOut);
    const narrow = matchMedia("(max-width: 720px)").matches;
    const tooWide = (e) => e.scrollWidth > e.clientWidth + 1;
    for (const block of blocks) block.classList.remove("stacked");
    const crowded = blocks.map((block) => narrow || [...block.querySelectorAll("table, td")].some(tooWide));
    blocks.forEach((block, i) => block.classList.toggle("stacked", crowded[i]));
  }

  // The sections of a page are laid out when they are nearly in view, and stay so; all of them on paper, and where an
  // address leads to a place of the page, which is then known.
  function layOutAll() {
    if (!article) return; // nothing has been arranged yet
    for (const section of article.querySelectorAll(":scope > section > section")) section.classList.add("near");
    arrange(derivations());
  }
  function comeNear(entries, observer) {
    const sections = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target);
    for (const section of sections) {
      observer.unobserve(section);
      section.classList.add("near");
    }
    if (sections.length) arrange(sections.flatMap((section) => [...section.querySelectorAll(".derivation")]));
  }

  // It happens when the page has been read, before most of it is shown. When the fonts have come, only the derivations
  // that have their reasons at the right are looked at again: nothing that is right moves. A new width moves all.
  const derivations = (also = "") => [...document.querySelectorAll(`.derivation${also}`)];
  let article, width;
  function begin() {
    article = document.querySelector(".bd-article") ?? document.body;
    width = article.clientWidth;
    const near = new IntersectionObserver(comeNear, { rootMargin: "100% 0%" });
    for (const section of article.querySelectorAll(":scope > section > section")) near.observe(section);
    if (document.querySelector(":target")) layOutAll();
    else arrange(derivations());
    offerAll();
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();

  // What is folded has no width before it is unfolded. What is unfolded at once is arranged at once.
  const unfolded = new Set();
  document.addEventListener("toggle", ({ target }) => {
    if (!target.open) return;
    if (!unfolded.size) requestAnimationFrame(() => {
      arrange(derivations().filter((e) => [...unfolded].some((details) => details.contains(e))));
      unfolded.clear();
    });
    unfolded.add(target);
  }, true);

  // One button unfolds all that goes further, and folds it again.
  function offerAll() {
    const line = document.querySelector(".reading-time > p"), folded = [...document.querySelectorAll("details.further")];
    if (!line || !folded.length) return;
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Unfold all" });
    button.addEventListener("click", () => {
      const open = !folded.every((e) => e.open);
      for (const e of folded) e.open = open;
      button.textContent = open ? "Fold what goes further" : "Unfold all";
    });
    line.append(" · ", button);
  }

  addEventListener("beforeprint", layOutAll);
  addEventListener("hashchange", () => {
    layOutAll();
    unfold();
  });
  addEventListener("load", async () => {
    await document.fonts.ready;
    const mathjax = window.MathJax?.startup?.promise; // where it typesets, a formula was as wide as its TeX until now
    await mathjax;
    arrange(derivations(mathjax ? "" : ":not(.stacked)"));
    unfold();
    new ResizeObserver(() => {
      if (article.clientWidth === width) return;
      width = article.clientWidth;
      requestAnimationFrame(() => arrange(derivations()));
    }).observe(article);
  });
})();
