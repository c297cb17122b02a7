// Bootstrap's scroll spy follows the table of contents of a page. Where a page has none, it takes every link of the
// page instead, and stumbles over anchors with a dot, such as #equation-5.1.5. It starts after this, on "load".
document.addEventListener("DOMContentLoaded", () => {
  if (!document.querySelector(".bd-toc-nav")) document.body.removeAttribute("data-bs-spy");
});

// The other edition: a link in the header leads to the same place there. The first page of the English edition leads on
// by itself, once, who reads Chinese and has not chosen.
document.addEventListener("DOMContentLoaded", () => {
  const other = document.querySelector("a.other-edition");
  if (!other) return;
  const chosen = (language) => {
    try {
      if (language) localStorage.setItem("edition", language);
      return localStorage.getItem("edition");
    } catch {
      return "none can be kept";
    }
  };
  other.addEventListener("click", () => {
    chosen(other.hreflang);
    other.hash = location.hash;
  });
  const begins = document.querySelector("link[rel=alternate][data-begins]");
  if (begins && !chosen() && /^zh\b/i.test(navigator.language)) {
    chosen(other.hreflang);
    location.replace(other.href);
  }
});
