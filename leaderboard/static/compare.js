// If there is a page for the chosen pair, open it; else the form requests the comparison from the server.
"use strict";
for (const form of document.querySelectorAll("form.choose")) {
  const message = form.querySelector(".message");
  const chosen = () => [...form.elements.entry].filter((one) => one.checked).map((one) => one.value);
  const known = new Map();
  for (const link of document.querySelectorAll("[data-pair]")) known.set(link.dataset.pair, link.href);
  form.addEventListener("submit", (event) => {
    const picked = chosen();
    if (picked.length !== 2) {
      event.preventDefault();
      message.textContent = "Choose two.";
      return;
    }
    const here = known.get(picked.join(" "));
    if (here) {
      event.preventDefault();
      location.assign(here);
    } else if (!location.protocol.startsWith("http")) {
      event.preventDefault();
      message.textContent = "Comparing these entries needs the board's server; the available comparisons are listed below.";
    }
  });
  form.addEventListener("change", () => (message.textContent = ""));
}
