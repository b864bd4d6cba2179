// Commands that name a board: a dot stands for its folder or a copy. Where these pages are served, their address does.
"use strict";
(() => {
  if (!location.protocol.startsWith("http")) return;
  const script = document.currentScript.getAttribute("src").replace(/static\/address\.js$/, "") || "./";
  // A site that was written into the folder of an export lies in its `site/`.
  const base = new URL(script, location.href).href.replace(/\/(site\/)?$/, "");
  for (const one of document.querySelectorAll("[data-board]")) one.textContent = one.dataset.board.replaceAll("{}", base);
})();
