// A filter over the figures of the overview: every word that is typed has to occur in the caption, the description, the
// chapter's title, the Chinese names of its terms or the numbers of the equations around it. The page is complete
// without it.
const plain = (text) => text.normalize("NFKC").toLowerCase().replace(/[()$\\{}_]/g, ""); // （5.1.5）, $d_k$
const cards = [...document.querySelectorAll(".gallery-card")];
if (cards.length) {
  const words = new Map(cards.map((card) => {
    const thumb = card.querySelector(".gallery-thumb");
    return [card, plain(`${thumb.dataset.words} ${thumb.getAttribute("aria-label")}`)];
  }));
  const form = document.querySelector("form.gallery-filter");
  const [input, output] = [form.querySelector("input"), form.querySelector("output")];
  const parts = [...document.querySelectorAll("section:has(> .gallery-part)")];
  const filter = () => {
    const wanted = plain(input.value).split(/\s+/).filter(Boolean);
    for (const card of cards) card.hidden = !wanted.every((word) => words.get(card).includes(word));
    for (const part of parts) part.hidden = !part.querySelector(".gallery-card:not([hidden])");
    const found = cards.filter((card) => !card.hidden).length;
    output.textContent = `${found} of ${cards.length} figures`;
  };
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) entry.target.classList.add("near");
  }, { rootMargin: "400px" });
  const sheets = document.querySelectorAll(".gallery-part");
  for (const part of sheets) near.observe(part);
  addEventListener("beforeprint", () => sheets.forEach((part) => part.classList.add("near")));
  input.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
}
