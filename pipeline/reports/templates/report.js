"use strict";
{
  const [table, search, action, outcome, status, pages] =
    ["payments", "search", "action", "outcome", "status", "pages"].map((id) => document.getElementById(id));
  const language = document.documentElement.lang;
  const collator = new Intl.Collator(language, { numeric: true });
  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  // 4,991.76 and 4.991,76 as 4991.76, so that an amount is found in either writing.
  const number = (text) => text.replace(/(\d)[,.'\u2019](?=\d{3}(?!\d))/g, "$1").replace(/(\d),(?=\d)/, "$1.");
  const count = (number) => number.toLocaleString(language === "en" ? "en-GB" : language);
  const said = (row, column) => row.cells[column].firstElementChild.textContent;
  const made = (tag, words) => Object.assign(document.createElement(tag), words);
  const button = (words) => made("button", { type: "button", ...words });
  const words = table ? JSON.parse(table.dataset.words) : {};
  const say = (key, values) => words[key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const rows = []; // all that the page has, in its own order: by what to do, most money first
  let sorted = null; // { head, way, key, sign }, by a column; null: the page's own order
  let at = 0; // the page of rows that is shown
  let forget = () => {}; // of the row that was copied last, that it was

  function read() {
    for (const body of table.tBodies) {
      const [heading, ...listed] = [...body.rows, ...(body.querySelector("template")?.content.children ?? [])];
      const advice = heading.cells[0].firstChild.textContent.trim();
      for (const row of listed) {
        row.cells[5].append(made("span", { className: "todo", textContent: advice }));
        const text = `${plain(row.textContent)} ${number(said(row, 4))}`;
        rows.push({ row, heading, group: body.id, text, matches: row.matches(".match") });
        const ariaLabel = say("ofRow", { word: words.copy, row: said(row, 0) });
        row.cells[5].append(button({ textContent: words.copy, ariaLabel }));
      }
    }
  }

  function found() {
    const sought = plain(search.value).split(/\s+/);
    const everywhere = search.value.trim() || outcome.value === "match";
    const searched = rows.filter(({ matches }) => everywhere || !matches);
    const chosen = searched.filter(({ row, group, text }) =>
      (!action.value || group === `do-${action.value}`)
      && (!outcome.value || row.classList.contains(outcome.value))
      && sought.every((word) => text.includes(word) || text.includes(number(word))));
    if (sorted) chosen.sort((a, b) => sorted.sign * collator.compare(sorted.key(a.row), sorted.key(b.row)));
    return [chosen, searched.length];
  }

  function show(page = 0, size = Number(table.dataset.rowsAtOnce)) {
    const [all, searchedCount] = found();
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
    table.classList.toggle("sorted", Boolean(sorted));
    const key = `${sorted ? "sorted" : "grouped"}${all.length > size ? "Here" : ""}`;
    const [first, last] = [count(page * size + 1), count(page * size + part.length)];
    status.textContent = say(key, { shown: count(all.length), all: count(searchedCount), first, last });
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
    if (found()[0].length > most) status.textContent += ` ${words.allInFile}`;
  }

  function sort(head) {
    const way = { null: "ascending", ascending: "descending", descending: null }[head.ariaSort];
    const key = (row) => head.dataset.sort ? row.dataset.rank : said(row, head.cellIndex);
    sorted = way && { head, way, key, sign: way === "ascending" ? 1 : -1 }; // the third time: the page's own order
    show();
  }

  function line(row) {
    const fields = [...row.querySelectorAll("tr > * > :not(button)")].map((part) => part.textContent);
    if (document.body.matches(".simulated")) fields.push("SIMULATED");
    // A spreadsheet would run a pasted cell that starts like a formula, even in quotes.
    return fields.map((field) => field.replace(/^(?=[\s"]*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20])/, "'")).join("\t");
  }

  async function copy(row, pushed) {
    const which = said(row, 0);
    const show = (word) => Object.assign(pushed, { textContent: word, ariaLabel: say("ofRow", { word, row: which }) });
    let [answer, told] = [words.copied, "rowCopied"];
    try {
      await navigator.clipboard.writeText(line(row));
    } catch {
      getSelection().selectAllChildren(row);
      [answer, told] = [words.notCopied, "rowSelected"];
    }
    forget();
    forget = () => show(words.copy);
    show(answer);
    status.textContent = say(told, { row: which });
  }

  // Text copied with the keyboard from a row selected here is as harmless as text copied by the button.
  function copied(event) {
    const row = getSelection().anchorNode;
    if (!row?.matches?.("#payments tr")) return;
    event.clipboardData.setData("text/plain", line(row));
    event.preventDefault();
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
    table.onclick = ({ target }) => target.matches("td button") && copy(target.closest("tr"), target);
    pages.onclick = ({ target }) => target.value && turn(target);
    document.oncopy = copied;
    onbeforeprint = toPaper;
    document.querySelector(".tools").hidden = false;
    show();
  }

  if (table) start();
}
