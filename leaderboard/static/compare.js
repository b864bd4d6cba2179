// Two entries whose comparison is on hand are led to its page; others to the server, which makes it.
"use strict";
for (const form of document.querySelectorAll("form.choose")) {
  const most = 5, said = form.querySelector(".said-here");
  const chosen = () => [...form.elements.entry].filter((one) => one.checked).map((one) => one.value);
  const known = new Map();
  for (const link of document.querySelectorAll("[data-pair]")) known.set(link.dataset.pair, link.href);
  form.addEventListener("submit", (event) => {
    const picked = chosen();
    if (picked.length < 2 || picked.length > most) {
      event.preventDefault();
      said.textContent = picked.length < 2 ? "Choose at least two." : "Choose at most " + most + ".";
      return;
    }
    const here = known.get(picked.join(" "));
    if (here) {
      event.preventDefault();
      location.assign(here);
    } else if (!location.protocol.startsWith("http")) {
      event.preventDefault();
      said.textContent = "There is no server here that could compare these; the pairs on hand are listed below.";
    }
  });
  form.addEventListener("change", () => (said.textContent = ""));
}
