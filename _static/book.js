// Bootstrap's scroll spy follows the table of contents of a page. Where a page has none, it takes every link of the
// page instead, and stumbles over anchors with a dot, such as #equation-5.1.5. It starts after this, on "load".
document.addEventListener("DOMContentLoaded", () => {
  if (!document.querySelector(".bd-toc-nav")) document.body.removeAttribute("data-bs-spy");
});
