"use strict";
// Everything works without this file; it only saves loading pages again.
const enter = document.getElementById("enter");
if (enter) enter.submit();

const live = document.getElementById("live");
if (live) {
  const texts = ["count", "rate", "sentence"].map((id) => [id, document.getElementById(id)]);
  const look = async () => {
    const answer = await fetch(live.dataset.now).catch(() => null);
    if (answer && answer.status === 401) return location.reload();
    if (answer && answer.ok) {
      const now = await answer.json();
      if (!now.is_on) return location.assign(live.dataset.then);
      const bar = document.getElementById("done");
      if (now.of) [bar.max, bar.value] = [now.of, now.done];
      for (const [id, place] of texts) if (place.textContent !== now[id]) place.textContent = now[id];
    } else document.getElementById("sentence").textContent = live.dataset.silent;
    setTimeout(look, 1000);
  };
  setTimeout(look, 500);
}

for (const time of document.querySelectorAll("time[datetime]")) {
  time.title = time.textContent;
  const local = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "long", timeStyle: "short", hourCycle: "h23" });
  time.textContent = local.format(new Date(time.dateTime));
}

// The row that keys act on: the row with the focus, or the last one that had it.
const rows = document.getElementById("rows");
const mark = (row) => {
  for (const other of rows.querySelectorAll("tr.here")) other.classList.remove("here");
  row.classList.add("here");
};
const unfolded = (row) => {
  row.querySelector("details").open = true;
  return row;
};
if (rows) {
  rows.addEventListener("focusin", (event) => {
    const row = event.target.closest("tbody tr");
    if (row) mark(row);
  });
  rows.addEventListener("submit", async (event) => {
    event.preventDefault();
    const form = event.target, row = form.closest("tr");
    const isTyped = !document.activeElement.matches("button"); // Enter saves and moves to the next row
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.action, { method: "POST", body, headers: { "X-Part": "row" } }).catch(() => null);
    const text = answer ? await answer.text() : "";
    if (answer && answer.ok) {
      const now = new DOMParser().parseFromString(text, "text/html");
      for (const fresh of [...now.querySelectorAll("[id]")]) document.getElementById(fresh.id)?.replaceWith(fresh);
      const shown = now.getElementById("shown").value;
      for (const field of document.querySelectorAll("input[name=shown]")) field.value = shown;
      const fresh = document.getElementById(row.id);
      let next = fresh;
      if (isTyped) do next = next.nextElementSibling; while (next?.classList.contains("decided"));
      mark(next || fresh);
      if (next && next !== fresh) unfolded(next).querySelector("input[type=radio]").focus();
      else fresh.querySelector("summary").focus();
    } else {
      const said = form.querySelector(".said");
      const why = new DOMParser().parseFromString(text, "text/html").querySelector(".notice");
      said.textContent = why ? why.textContent : rows.dataset.silent;
      said.classList.add("wrong");
    }
  });
}

// A recorded reason belongs to its decision only: clear it when another decision is chosen.
if (rows) rows.addEventListener("change", (event) => {
  const reason = event.target.form?.elements.reason;
  if (event.target.name === "decision" && reason && reason.value === reason.defaultValue) reason.value = event.target.defaultChecked ? reason.defaultValue : "";
});

const keys = document.getElementById("keys");
if (rows && keys) {
  keys.closest("label").hidden = false;
  keys.checked = localStorage.getItem("desk-keys") !== "off";
  keys.addEventListener("change", () => localStorage.setItem("desk-keys", keys.checked ? "on" : "off"));
  document.addEventListener("keydown", (event) => {
    const types = event.target.matches("input:not([type=radio]):not([type=checkbox]), select, textarea");
    if (!keys.checked || types || event.ctrlKey || event.metaKey || event.altKey) return;
    const all = [...rows.tBodies[0].rows], at = all.findIndex((row) => row.classList.contains("here"));
    const step = { j: 1, k: -1 }[event.key], word = { f: "fix", r: "release", h: "hold" }[event.key];
    if (step) {
      const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
      mark(next);
      next.scrollIntoView({ block: "nearest" });
      next.querySelector("summary")?.focus();
      event.preventDefault();
    } else if (word && at >= 0) {
      const choice = all[at].querySelector(`input[value=${word}]`);
      if (!choice) return;
      unfolded(all[at]);
      choice.checked = true;
      all[at].querySelector("input[name=reason]").focus();
      event.preventDefault();
    }
  });
}

for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = button.previousElementSibling;
    text.select();
    const copying = navigator.clipboard ? navigator.clipboard.writeText(text.value) : Promise.reject();
    if (await copying.then(() => true, () => document.execCommand("copy"))) button.textContent = button.dataset.copied;
  });
}

const drop = document.querySelector(".drop");
if (drop) {
  const said = drop.querySelector(".said");
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    drop.elements.file.files = event.dataTransfer.files;
    if (event.dataTransfer.files.length) drop.requestSubmit();
  });
  drop.addEventListener("submit", (event) => {
    const [file] = drop.elements.file.files;
    const fault = !file ? "" : file.size === 0 ? drop.dataset.empty : file.size > Number(drop.dataset.max) ? drop.dataset.tooLarge : "";
    if (fault) event.preventDefault();
    said.classList.toggle("wrong", Boolean(fault));
    said.textContent = fault || drop.dataset.uploading;
  });
}

// A button cannot be pressed twice.
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented) return;
  setTimeout(() => event.target.querySelectorAll("button").forEach((button) => { button.disabled = true; }));
});
window.addEventListener("pageshow", () => document.querySelectorAll("button:disabled").forEach((button) => { button.disabled = false; }));
