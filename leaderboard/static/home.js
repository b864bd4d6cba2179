// Filters, sorting and search of the page's table. The state is stored in the URL, so that it survives reloads and can be
// shared.
"use strict";
(() => {
  const table = document.querySelector("table.home");
  const form = document.querySelector("form.filters");
  if (!table || !form) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const shown = form.querySelector("output");
  const names = ["q", "kind", "field", "budget", "protocol", "extra", "pretraining", "size"];
  const kinds = heads.slice(1).map((head) => head.dataset.kind);
  const text = new Map(rows.map((row) => [row, row.cells[0].textContent.toLowerCase()]));
  const place = new Map(rows.map((row, at) => [row, at]));
  let sort = "";
  let down = true;

  const number = (said) => {
    const found = /[-−]?[0-9][0-9.e+-]*/.exec(said || "");
    return found ? parseFloat(found[0].replace("−", "-")) : null;
  };

  // The sort key of a row; null if it has no such value. Rows with null are always last.
  const value = (row) => {
    const at = kinds.indexOf(sort);
    if (at < 0) return text.get(row);
    const cell = row.cells[at + 1];
    const by = form.elements.by.value || "ood";
    if (by === "ood" && cell.dataset.v) return parseFloat(cell.dataset.v);
    const line = cell.querySelector(by === "ood" ? "strong" : by === "id" ? ".i" : ".g");
    return line ? number(line.textContent) : null;
  };

  const size = (row) => {
    if (!row.dataset.n) return "unknown";
    const count = Number(row.dataset.n);
    return count < 1e6 ? "1m" : count < 1e8 ? "100m" : count < 1e10 ? "10b" : "more";
  };

  const fits = (row, wanted) =>
    wanted.q.toLowerCase().split(/\s+/).every((word) => text.get(row).includes(word)) &&
    (!wanted.kind || row.cells[kinds.indexOf(wanted.kind) + 1].hasChildNodes()) &&
    (!wanted.field || row.dataset.f.split(" ").includes(wanted.field)) &&
    (!wanted.budget || row.dataset.b === wanted.budget) &&
    (!wanted.protocol || row.dataset.p === wanted.protocol) &&
    (!wanted.extra || row.dataset.x === wanted.extra) &&
    (!wanted.pretraining || row.dataset.t === wanted.pretraining) &&
    (!wanted.size || size(row) === wanted.size);

  const order = () => {
    if (!sort) return rows;
    const keyed = rows.map((row) => [row, value(row)]);
    const sign = down ? -1 : 1;
    keyed.sort(([one, a], [other, b]) => {
      if (a === null || b === null) return (a === null) - (b === null) || place.get(one) - place.get(other);
      return sign * ((a > b) - (a < b)) || place.get(one) - place.get(other);
    });
    return keyed.map(([row]) => row);
  };

  const show = () => {
    const wanted = Object.fromEntries(names.map((name) => [name, form.elements[name].value.trim()]));
    let count = 0;
    const sorted = order();
    for (const row of sorted) {
      row.hidden = !fits(row, wanted);
      count += !row.hidden;
    }
    body.append(...sorted);
    kinds.forEach((kind, at) => {
      const off = Boolean(wanted.kind) && wanted.kind !== kind;
      if (heads[at + 1].classList.contains("off") === off) return;
      heads[at + 1].classList.toggle("off", off);
      for (const row of rows) row.cells[at + 1].classList.toggle("off", off);
    });
    for (const head of heads) {
      const mine = head.dataset.kind || "model";
      head.setAttribute("aria-sort", sort !== mine ? "none" : down ? "descending" : "ascending");
    }
    shown.value = `${count} of ${rows.length} shown`;
  };

  const keep = () => {
    const query = new URLSearchParams();
    for (const name of [...names, "by"]) {
      const said = form.elements[name].value.trim();
      if (said) query.set(name, said);
    }
    if (sort) query.set("sort", (down ? "-" : "") + sort);
    const said = query.toString();
    try {
      history.replaceState(null, "", said ? `?${said}` : location.pathname);
    } catch {
      // A page opened as a file cannot change its URL; the table is updated all the same.
    }
  };

  const read = () => {
    const query = new URLSearchParams(location.search);
    for (const name of [...names, "by"]) {
      const field = form.elements[name];
      const said = query.get(name) || "";
      field.value = said;
      if (field.value !== said) field.value = "";
    }
    const said = query.get("sort") || "";
    down = said.startsWith("-");
    sort = said.replace(/^-/, "");
    if (sort !== "model" && !kinds.includes(sort)) sort = "";
  };

  for (const head of heads) {
    const mine = head.dataset.kind || "model";
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      down = sort === mine ? !down : mine !== "model";
      sort = mine;
      keep();
      show();
    });
  }
  form.addEventListener("input", () => { keep(); show(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { sort = ""; keep(); show(); }));
  addEventListener("popstate", () => { read(); show(); });
  form.hidden = false;
  read();
  show();
})();
