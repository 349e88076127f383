// Updates a page: loads it again and replaces the parts that have changed.
"use strict";

const PERIOD = 3000; // milliseconds
const note = document.getElementById("connection");
let tag = "";

// A part stays as it is while the user interacts with it.
const isUsed = (part) => part.contains(document.activeElement) || part.querySelector("details[open]");

function replace(part, fresh) {
  if (fresh === null || part.innerHTML === fresh.innerHTML || isUsed(part)) return;
  const scrolled = [...part.querySelectorAll(".box")].map((box) => box.scrollLeft);
  part.replaceChildren(...fresh.childNodes);
  part.querySelectorAll(".box").forEach((box, i) => { box.scrollLeft = scrolled[i] || 0; });
}

async function refresh() {
  const headers = { Accept: "text/html" };
  if (tag) headers["If-None-Match"] = tag;
  const answer = await fetch(location.href, { headers, cache: "no-store" });
  if (answer.status === 401) { location.reload(); return; }
  if (answer.status !== 304) {
    if (!answer.ok) throw new Error(answer.statusText);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const parts = [...document.querySelectorAll("[data-live]")];
    parts.forEach((part) => replace(part, fresh.getElementById(part.id)));
    // parts in use are compared again the next time
    tag = parts.some(isUsed) ? "" : answer.headers.get("ETag") || "";
  }
  note.textContent = "";
}

async function loop() {
  if (!document.hidden) {
    try { await refresh(); } catch { note.textContent = "The service does not respond; retrying."; }
  }
  setTimeout(loop, PERIOD);
}

// Shows only the fields of the form that belong to the present choices.
function choose(form) {
  for (const part of form.querySelectorAll("[data-for]")) {
    const [name, values] = part.dataset.for.split("=");
    part.hidden = !values.split(" ").includes(new FormData(form).get(name));
  }
}

const form = document.querySelector("#create form");
if (form) {
  form.addEventListener("change", () => choose(form));
  choose(form);
}
setTimeout(loop, PERIOD);
