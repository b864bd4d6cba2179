// Commands with a board: a dot means its folder or a copy. If these pages are served, it is replaced by their address.
"use strict";
(() => {
  if (!location.protocol.startsWith("http")) return;
  const script = document.currentScript.getAttribute("src").replace(/static\/address\.js$/, "") || "./";
  // A site in the folder of an export is in its `site/`.
  const base = new URL(script, location.href).href.replace(/\/(site\/)?$/, "");
  for (const one of document.querySelectorAll("[data-board]")) one.textContent = one.dataset.board.replaceAll("{}", base);
})();
