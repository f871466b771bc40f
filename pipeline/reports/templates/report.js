"use strict";
{
  // All rows are in the page; so many of them are in the document at a time.
  const table = document.getElementById("payments");
  const [search, action, outcome] = ["search", "action", "outcome"].map((id) => document.getElementById(id));
  const status = document.getElementById("status");
  const pages = document.getElementById("pages");
  const order = new Intl.Collator("en", { numeric: true });
  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const count = (number) => number.toLocaleString("en-GB");
  const headings = new Map();
  const rows = [];
  let sorted = null; // { column, kind, sign }; null is the order of the page: by what to do, most money first
  let at = 0;

  const read = () => {
    for (const body of table.tBodies) {
      const [heading, ...first] = body.querySelectorAll(":scope > tr");
      headings.set(body.dataset.action, heading);
      const rest = body.querySelector("template")?.content.children ?? [];
      for (const row of [...first, ...rest]) rows.push({ row, action: body.dataset.action });
    }
  };

  const key = ({ row }) => {
    if (sorted.kind === "rank") return Number(row.dataset.rank);
    const text = row.cells[sorted.column].firstElementChild.textContent;
    return sorted.kind === "number" ? Number(text) : text;
  };

  const found = () => {
    const words = plain(search.value).split(/\s+/);
    const chosen = rows.filter((one) => {
      if (action.value && one.action !== action.value) return false;
      if (outcome.value && !one.row.classList.contains(outcome.value)) return false;
      one.text ??= plain(one.row.textContent);
      return words.every((word) => one.text.includes(word));
    });
    if (!sorted) return chosen;
    const compare = sorted.kind === "text" ? order.compare : (a, b) => a - b;
    const keyed = chosen.map((one) => [key(one), one]);
    return keyed.sort(([a], [b]) => sorted.sign * compare(a, b)).map(([, one]) => one);
  };

  const ready = (row) => {
    if (row.cells.length === 7) {
      const copy = document.createElement("button");
      copy.type = "button";
      copy.textContent = "Copy";
      copy.setAttribute("aria-label", `Copy row ${row.cells[0].firstElementChild.textContent}`);
      row.insertCell().append(copy);
    }
    return row;
  };

  const show = () => {
    const all = found();
    const size = Number(table.dataset.rowsAtOnce);
    at = Math.max(0, Math.min(at, Math.ceil(all.length / size) - 1));
    const part = all.slice(at * size, (at + 1) * size);
    for (const body of [...table.tBodies]) body.remove();
    let body, last;
    for (const one of part) {
      const group = sorted ? "sorted" : one.action;
      if (group !== last) {
        body = table.createTBody();
        if (!sorted) { body.id = `do-${group}`; body.append(headings.get(group)); }
        last = group;
      }
      body.append(ready(one.row));
    }
    const some = all.length > size ? `Rows ${count(at * size + 1)} to ${count(at * size + part.length)} of ${count(all.length)}` : `${count(all.length)} of ${count(rows.length)} rows`;
    status.textContent = `${some}, ${sorted ? "sorted" : "grouped by what to do"}.`;
    pages.hidden = all.length <= size;
    const [back, on] = pages.children;
    back.disabled = at === 0;
    on.disabled = (at + 1) * size >= all.length;
  };

  const sort = (head, column) => {
    const now = sorted?.column === column ? sorted.sign : 0;
    sorted = now < 0 ? null : { column, kind: head.dataset.sort, sign: now ? -1 : 1 };
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    if (sorted) head.setAttribute("aria-sort", sorted.sign > 0 ? "ascending" : "descending");
    at = 0;
    show();
  };

  const copy = async (row) => {
    const fields = [...row.cells].slice(0, 7).flatMap((cell) => [...cell.children]).map((part) => part.textContent);
    if (document.body.classList.contains("simulated")) fields.push("SIMULATED");
    // A spreadsheet would run a pasted cell that starts like a formula.
    const line = fields.map((field) => field.replace(/^(?=\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20])/, "'")).join("\t");
    const name = `Row ${fields[0]}`;
    try {
      await navigator.clipboard.writeText(line);
      status.textContent = `${name} copied.`;
    } catch {
      getSelection().selectAllChildren(row);
      status.textContent = `${name} is selected: copy it with the keyboard.`;
    }
  };

  const start = () => {
    read();
    for (const [column, head] of [...table.tHead.rows[0].cells].entries()) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(head, column));
      head.append(button);
    }
    const last = document.createElement("td");
    table.tHead.rows[0].append(last);
    for (const heading of headings.values()) heading.cells[0].colSpan = 8;
    for (const field of [search, action, outcome]) field.addEventListener("input", () => { at = 0; show(); });
    document.getElementById("clear").addEventListener("click", () => {
      search.value = action.value = outcome.value = "";
      show();
      search.focus();
    });
    pages.addEventListener("click", ({ target }) => { at += Number(target.value ?? 0); show(); table.scrollIntoView(); });
    table.addEventListener("click", ({ target }) => { if (target.closest("td button")) copy(target.closest("tr")); });
    for (const step of document.querySelectorAll(".steps a")) {
      step.addEventListener("click", () => { action.value = step.dataset.action; search.value = outcome.value = ""; at = 0; sorted = null; show(); });
    }
    document.querySelector(".tools").hidden = false;
    show();
  };

  if (table) start();
}
