"use strict";
{
  const [table, search, action, outcome, status, pages] =
    ["payments", "search", "action", "outcome", "status", "pages"].map((id) => document.getElementById(id));
  const collator = new Intl.Collator("en", { numeric: true });
  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const count = (number) => number.toLocaleString("en-GB");
  const headings = new Map();
  const rows = []; // all that the page has, in its own order: by what to do, most money first
  let sorted = null; // { head, sign }
  let at = 0; // the page of rows that is shown

  function read() {
    for (const { dataset, children } of table.tBodies) {
      const [heading, ...shown] = [...children].filter((child) => child.localName === "tr");
      const rest = [...children].find((child) => child.localName === "template");
      headings.set(dataset.action, heading);
      for (const row of [...shown, ...(rest?.content.children ?? [])]) rows.push({ row, action: dataset.action });
    }
  }

  function key({ row }) {
    const text = row.cells[sorted.head.cellIndex].firstElementChild.textContent;
    return { rank: () => Number(row.dataset.rank), number: () => Number(text), text: () => text }[sorted.head.dataset.sort]();
  }

  function found() {
    const words = plain(search.value).split(/\s+/);
    const chosen = rows.filter((one) => {
      if (action.value && one.action !== action.value) return false;
      if (outcome.value && !one.row.classList.contains(outcome.value)) return false;
      one.text ??= plain(one.row.textContent);
      return words.every((word) => one.text.includes(word));
    });
    if (!sorted) return chosen;
    const keyed = chosen.map((one) => [key(one), one]);
    return keyed.sort(([a], [b]) => sorted.sign * collator.compare(a, b)).map(([, one]) => one);
  }

  function withCopy(row) {
    if (row.cells.length === 7) {
      const button = row.insertCell().appendChild(document.createElement("button"));
      button.type = "button";
      button.textContent = "Copy";
      button.ariaLabel = `Copy row ${row.cells[0].firstElementChild.textContent}`;
    }
    return row;
  }

  function show(page = 0, size = Number(table.dataset.rowsAtOnce)) {
    const all = found();
    const part = all.slice(page * size, (page + 1) * size);
    at = page;
    for (const body of [...table.tBodies]) body.remove();
    let body;
    for (const { row, action } of part) {
      const group = sorted ? "rows-sorted" : `do-${action}`;
      if (body?.id !== group) {
        body = table.createTBody();
        body.id = group;
        if (!sorted) body.append(headings.get(action));
      }
      body.append(withCopy(row));
    }
    const here = all.length > size ? `; here ${count(page * size + 1)} to ${count(page * size + part.length)}` : "";
    status.textContent = `${count(all.length)} of ${count(rows.length)} rows, ${sorted ? "sorted" : "grouped by what to do"}${here}.`;
    pages.hidden = all.length <= size;
    pages.firstElementChild.disabled = page === 0;
    pages.lastElementChild.disabled = (page + 1) * size >= all.length;
    for (const head of table.tHead.rows[0].cells) head.removeAttribute("aria-sort");
    if (sorted) sorted.head.ariaSort = sorted.sign > 0 ? "ascending" : "descending";
  }

  function turn(button) {
    show(at + Number(button.value));
    document.getElementById("rows").scrollIntoView();
    if (button.disabled) pages.querySelector(":enabled").focus();
  }

  function toPaper() {
    const [before, most] = [at, Number(table.dataset.rowsOnPaper)];
    onafterprint = () => show(before);
    show(0, most);
    if (found().length > most) status.textContent += " All of them are in the outcome file.";
  }

  function sort(head) {
    const next = { 0: 1, 1: -1, "-1": 0 }[sorted?.head === head ? sorted.sign : 0];
    sorted = next ? { head, sign: next } : null; // the third time is the page's own order again
    show();
  }

  async function copy(row) {
    const parts = [...row.cells].slice(0, 7).flatMap((cell) => [...cell.children]);
    const fields = [...parts.map((part) => part.textContent), ...(document.body.matches(".simulated") ? ["SIMULATED"] : [])];
    // A spreadsheet would run a pasted cell that starts like a formula.
    const line = fields.map((field) => field.replace(/^(?=\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20])/, "'")).join("\t");
    try {
      await navigator.clipboard.writeText(line);
      status.textContent = `Row ${fields[0]} is copied.`;
    } catch {
      getSelection().selectAllChildren(row);
      status.textContent = `Row ${fields[0]} is selected: copy it with the keyboard.`;
    }
  }

  function choose(what) {
    [search.value, action.value, outcome.value, sorted] = ["", what, "", null];
    show();
  }

  function start() {
    read();
    for (const head of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      button.onclick = () => sort(head);
      head.append(button);
    }
    table.tHead.rows[0].append(document.createElement("td"));
    for (const heading of headings.values()) heading.cells[0].colSpan = 8;
    for (const field of [search, action, outcome]) field.oninput = () => show();
    for (const step of document.querySelectorAll(".steps a")) step.onclick = () => choose(step.dataset.action);
    document.getElementById("reset").onclick = () => choose("");
    table.onclick = ({ target }) => target.closest("td button") && copy(target.closest("tr"));
    pages.onclick = ({ target }) => target.value && turn(target);
    onbeforeprint = toPaper;
    document.querySelector(".tools").hidden = false;
    show();
  }

  if (table) start();
}
