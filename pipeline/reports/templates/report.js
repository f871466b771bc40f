"use strict";
{
  const [table, search, action, outcome, status, pages] =
    ["payments", "search", "action", "outcome", "status", "pages"].map((id) => document.getElementById(id));
  const collator = new Intl.Collator("en", { numeric: true });
  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const count = (number) => number.toLocaleString("en-GB");
  const said = (row, column) => row.cells[column].firstElementChild.textContent;
  const button = (words) => Object.assign(document.createElement("button"), { type: "button", ...words });
  const rows = []; // all that the page has, in its own order: by what to do, most money first
  let sorted = null; // { head, way }, by a column; null: the page's own order
  let at = 0; // the page of rows that is shown

  function read() {
    for (const body of table.tBodies) {
      const [heading, ...listed] = [...body.rows, ...(body.querySelector("template")?.content.children ?? [])];
      for (const row of listed) {
        rows.push({ row, heading, group: body.id, text: plain(row.textContent) });
        row.cells[6].append(button({ textContent: "Copy", ariaLabel: `Copy row ${said(row, 0)}` }));
      }
    }
  }

  function found() {
    const words = plain(search.value).split(/\s+/);
    const chosen = rows.filter(({ row, group, text }) =>
      (!action.value || group === `do-${action.value}`)
      && (!outcome.value || row.classList.contains(outcome.value))
      && words.every((word) => text.includes(word)));
    if (!sorted) return chosen;
    const { dataset, cellIndex } = sorted.head;
    const sign = sorted.way === "ascending" ? 1 : -1;
    const keyed = chosen.map((one) => [dataset.sort ? one.row.dataset.rank : said(one.row, cellIndex), one]);
    return keyed.sort(([a], [b]) => sign * collator.compare(a, b)).map(([, one]) => one);
  }

  function show(page = 0, size = Number(table.dataset.rowsAtOnce)) {
    const all = found();
    const part = all.slice(page * size, (page + 1) * size);
    at = page;
    for (const body of [...table.tBodies]) body.remove();
    let body;
    for (const { row, heading, group } of part) {
      if (!body || (!sorted && body.id !== group)) {
        body = table.createTBody();
        body.id = sorted ? "sorted" : group;
        if (!sorted) body.append(heading);
      }
      body.append(row);
    }
    const order = sorted ? "sorted" : "grouped by what to do";
    const here = all.length > size ? `; here ${count(page * size + 1)} to ${count(page * size + part.length)}` : "";
    status.textContent = `${count(all.length)} of ${count(rows.length)} rows, ${order}${here}.`;
    pages.hidden = all.length <= size;
    pages.firstElementChild.disabled = page === 0;
    pages.lastElementChild.disabled = (page + 1) * size >= all.length;
    for (const head of table.tHead.rows[0].cells) head.ariaSort = head === sorted?.head ? sorted.way : null;
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
    const way = { null: "ascending", ascending: "descending", descending: null }[head.ariaSort];
    sorted = way && { head, way }; // the third time is the page's own order again
    show();
  }

  async function copy(row) {
    const fields = [...row.querySelectorAll("tr > * > :not(button)")].map((part) => part.textContent);
    if (document.body.matches(".simulated")) fields.push("SIMULATED");
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
      head.replaceChildren(button({ textContent: head.textContent, onclick: () => sort(head) }));
    }
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
