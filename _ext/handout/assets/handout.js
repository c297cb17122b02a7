// What a page gives a writer: the TeX of a display or a derivation, a handout without solutions, and the meaning of a term or a symbol.
"use strict";

// --- TeX ------------------------------------------------------------------------------------------

// Marks a word for the reader that looks like a key: an edition in another language translates it.
const say = (text) => text;

function offerTex(display) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "tex-copy";
  button.textContent = "TeX";
  button.setAttribute("aria-label", `Copy this ${display.matches(".derivation") ? say("derivation") : say("formula")} as TeX`);
  button.addEventListener("click", async () => {
    const done = await navigator.clipboard?.writeText(display.dataset.tex).then(() => true, () => false);
    button.textContent = done ? "Copied" : "Not copied";
    setTimeout(() => (button.textContent = "TeX"), 1500);
  });
  display.classList.add("has-tex");
  display.append(button);
}

// --- paper ----------------------------------------------------------------------------------------

function printWithoutSolutions() {
  document.documentElement.dataset.handout = "";
  addEventListener("afterprint", () => delete document.documentElement.dataset.handout, { once: true });
  window.print();
}

// --- the meaning of a term or a symbol ---------------------------------------------------------------

const TERMS = new URL("terms.js", document.currentScript.src).href;
let terms;
function loadTerms() {
  terms ??= new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = TERMS;
    script.onload = () => resolve(window.glossaryTerms);
    script.onerror = () => resolve({});
    document.head.append(script);
  });
  return terms;
}

// A link to a symbol has its meaning with it; one to a term has it in the glossary's file.
async function meaningOf(link) {
  if (link.dataset.meaning) return link.dataset.meaning;
  return (await loadTerms())[decodeURIComponent(link.hash.slice(1))] ?? "";
}

function lookUp(links) {
  const box = document.createElement("div");
  box.className = "meaning";
  box.id = "meaning";
  box.popover = "manual";
  box.setAttribute("role", "tooltip");
  document.body.append(box);
  let of = null;
  let touched = null;
  function hide() {
    of?.removeAttribute("aria-describedby");
    of = null;
    if (box.matches(":popover-open")) box.hidePopover();
  }
  async function show(link) {
    if (of === link) return;
    hide();
    of = link;
    const text = await meaningOf(link);
    if (of !== link || !text) return;
    box.textContent = text;
    link.setAttribute("aria-describedby", box.id);
    box.showPopover();
    const at = link.getClientRects()[0];
    const below = at.bottom + box.offsetHeight + 8 < innerHeight;
    box.style.top = `${scrollY + (below ? at.bottom + 4 : at.top - box.offsetHeight - 4)}px`;
    box.style.left = `${scrollX + Math.max(4, Math.min(at.left, document.documentElement.clientWidth - box.offsetWidth - 4))}px`;
  }
  for (const link of links) {
    if (link.title) {
      link.dataset.meaning = link.title;
      link.removeAttribute("title");
    }
    link.addEventListener("mouseenter", () => show(link));
    link.addEventListener("mouseleave", hide);
    link.addEventListener("focus", () => link.matches(":focus-visible") && show(link));
    link.addEventListener("blur", hide);
    // The first touch shows the meaning, the second one follows the link.
    link.addEventListener("pointerdown", (event) => (touched = event.pointerType === "touch" && of !== link ? link : null));
    link.addEventListener("click", (event) => {
      if (touched !== link) return;
      event.preventDefault();
      touched = null;
      show(link);
    });
  }
  addEventListener("keydown", (event) => event.key === "Escape" && hide());
  addEventListener("pointerdown", (event) => !event.target.closest?.(".symbol-link, .meaning, a:has(.term-link)") && hide());
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("[data-tex]").forEach(offerTex);
  lookUp(document.querySelectorAll("a.symbol-link, a:has(> .term-link)"));
});
