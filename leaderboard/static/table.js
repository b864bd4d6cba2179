// Sorts tables of the class "sortable" by a click on a column's head, and filters the one that a form of the class
// "filters" precedes. A head's data-sort is the order of the first click: "up" or "down" for numbers, else "text". A cell's
// key is its data-v, else the number or text that it begins with. The view is stored in the URL, so that it survives
// reloads and can be shared.
"use strict";
(() => {
  const number = (said) => {
    const found = /^[^\d−-]*([-−]?[0-9][0-9.e+-]*)/.exec(said.replaceAll(",", ""));
    return found ? parseFloat(found[1].replace("−", "-")) : null;
  };

  const prepare = (table, form) => {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    const kinds = heads.map((head) => head.dataset.kind);
    const keys = heads.map((head) => head.dataset.kind || head.textContent.trim());
    const place = new Map(rows.map((row, at) => [row, at]));
    const text = new Map(rows.map((row) => [row, row.cells[0].textContent.toLowerCase()]));
    const names = form ? [...form.elements].map((field) => field.name).filter(Boolean) : [];
    let sort = "";
    let down = true;

    // The key of a row; null if it has none. Rows with null are always last.
    const value = (row, at) => {
      const cell = row.cells[at];
      if (heads[at].dataset.sort === "text") return cell.textContent.trim().toLowerCase() || null;
      const by = form && form.elements.by ? form.elements.by.value : "";
      if (!by && cell.dataset.v !== undefined) return number(cell.dataset.v);
      const line = by ? cell.querySelector(".by-" + by) : cell.querySelector("strong") || cell;
      return line ? number(line.textContent) : null;
    };

    const order = () => {
      const at = keys.indexOf(sort);
      if (at < 0) return rows;
      const keyed = rows.map((row) => [row, value(row, at)]);
      const sign = down ? -1 : 1;
      keyed.sort(([one, a], [other, b]) => {
        if (a === null || b === null) return (a === null) - (b === null) || place.get(one) - place.get(other);
        return sign * ((a > b) - (a < b)) || place.get(one) - place.get(other);
      });
      return keyed.map(([row]) => row);
    };

    const fits = (row, wanted) =>
      Object.entries(wanted).every(([name, said]) =>
        name === "q"
          ? said.toLowerCase().split(/\s+/).every((word) => text.get(row).includes(word))
          : name === "by" || (row.dataset[name] || "").split("|").includes(said));

    const show = () => {
      const wanted = {};
      for (const name of names) if (form.elements[name].value.trim()) wanted[name] = form.elements[name].value.trim();
      let count = 0;
      const sorted = order();
      for (const row of sorted) {
        row.hidden = !fits(row, wanted);
        count += !row.hidden;
      }
      body.append(...sorted);
      kinds.forEach((kind, at) => {
        const off = Boolean(kind && wanted.kind && wanted.kind !== kind);
        if (heads[at].classList.contains("off") === off) return;
        heads[at].classList.toggle("off", off);
        for (const row of rows) row.cells[at].classList.toggle("off", off);
      });
      heads.forEach((head, at) => {
        if (head.dataset.sort) head.setAttribute("aria-sort", sort !== keys[at] ? "none" : down ? "descending" : "ascending");
      });
      if (form) form.querySelector("output").value = `${count} of ${rows.length} shown`;
    };

    const keep = () => {
      if (!form) return;
      const query = new URLSearchParams();
      for (const name of names) if (form.elements[name].value.trim()) query.set(name, form.elements[name].value.trim());
      if (sort) query.set("sort", (down ? "-" : "") + sort);
      const said = query.toString();
      try {
        history.replaceState(null, "", (said ? `?${said}` : location.pathname) + location.hash);
      } catch {
        // A page opened as a file cannot change its URL; the table is updated all the same.
      }
    };

    const read = () => {
      const query = new URLSearchParams(location.search);
      for (const name of names) {
        const field = form.elements[name];
        field.value = query.get(name) || "";
        if (field.value !== (query.get(name) || "")) field.value = "";
      }
      const said = query.get("sort") || "";
      down = said.startsWith("-");
      sort = said.replace(/^-/, "");
    };

    heads.forEach((head, at) => {
      if (!head.dataset.sort) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        down = sort === keys[at] ? !down : head.dataset.sort === "down";
        sort = keys[at];
        keep();
        show();
      });
    });
    if (form) {
      form.addEventListener("input", () => { keep(); show(); });
      form.addEventListener("submit", (event) => event.preventDefault());
      form.addEventListener("reset", () => setTimeout(() => { sort = ""; keep(); show(); }));
      addEventListener("popstate", () => { read(); show(); });
      form.hidden = false;
      read();
    }
    show();
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const before = table.closest(".scroll").previousElementSibling;
    const form = before && before.matches("form.filters") ? before : null;
    if (form || table.tBodies[0].rows.length > 1) prepare(table, form);
  }
})();
