// The policy builder: the server edits the document and says what follows; this shows both.

import { enable } from "/assets/console.js";

const form = document.getElementById("policy");
const text = document.getElementById("document");
const draft = document.getElementById("draft");
const TYPING = 350;
let typing = null;
let turn = 0;
/** Choices that show what a person chose, which the document may not follow. */
const touched = new Set();

async function send(edit) {
  const mine = ++turn;
  const body = new URLSearchParams({ document: text.value, ...edit });
  const headers = { "x-csrf-token": document.body.dataset.csrf, "x-page-part": "1" };
  draft.classList.add("busy");
  try {
    const response = await fetch(form.dataset.draft, { method: "POST", body, headers });
    if (response.status === 401) location.assign("/login");
    if (!response.ok || mine !== turn) return;
    const answer = await response.json();
    if (edit && answer.document !== text.value) text.value = answer.document;
    show(answer);
  } finally {
    if (mine === turn) draft.classList.remove("busy");
  }
}

/** Replaces what follows from the document, and keeps the focus. */
function show(answer) {
  const focus = document.activeElement;
  const group = focus?.closest?.(".choice");
  const kept = group && { section: group.dataset.section, key: group.dataset.key, value: focus.value, type: focus.className };
  const page = new DOMParser().parseFromString(answer.html, "text/html");
  enable(page);
  replaceAround(patched(page), page);
  if (answer.error) {
    const note = document.createElement("p");
    note.className = "flash error";
    note.setAttribute("role", "alert");
    note.textContent = answer.error;
    draft.prepend(note);
  }
  if (!kept) return;
  for (const choice of draft.querySelectorAll(".choice")) {
    if (choice.dataset.section !== kept.section || choice.dataset.key !== kept.key) continue;
    const field = kept.type ? choice.querySelector(`.${kept.type.split(" ")[0]}`) : choice.querySelector("input:checked");
    (field ?? choice.querySelector("input:checked"))?.focus();
  }
}

/**
 * Changes the choices that differ, so that a thousand of them are not laid out again. Returns the
 * builder of this page, or null if it has to be replaced whole.
 */
function patched(page) {
  const [builder, fresh] = [draft.querySelector(".builder"), page.querySelector(".builder")];
  if (!builder || builder.children.length !== fresh?.children.length) return null;
  const [old, now] = [[...builder.children], [...fresh.children]];
  for (const [place, element] of now.entries()) {
    if (touched.has(old[place]) || !old[place].isEqualNode(element)) old[place].replaceWith(element);
  }
  return builder;
}

/** Replaces everything but the builder. */
function replaceAround(builder, page) {
  touched.clear();
  const nodes = [...page.body.childNodes];
  if (!builder) return draft.replaceChildren(...nodes);
  const place = nodes.findIndex((node) => node.classList?.contains("builder"));
  for (const node of [...draft.childNodes]) if (node !== builder) node.remove();
  builder.before(...nodes.slice(0, place));
  builder.after(...nodes.slice(place + 1));
}

function editOf(choice, effect) {
  return {
    section: choice.dataset.section,
    key: choice.dataset.key,
    effect,
    max: choice.querySelector(".max")?.value ?? "30",
    window: choice.querySelector(".window")?.value ?? "minute",
  };
}

draft.addEventListener("change", (event) => {
  const choice = event.target.closest(".choice");
  if (!choice) return;
  touched.add(choice);
  const effect = choice.querySelector("input[type=radio]:checked")?.value;
  if (effect) send(editOf(choice, effect));
});

draft.addEventListener("click", (event) => {
  const inherit = event.target.closest("button.inherit");
  if (inherit) send(editOf(inherit.closest(".choice"), "inherit"));
});

/** Puts the cursor where a problem or a rule is. */
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-line]");
  if (!link) return;
  event.preventDefault();
  goTo(Number(link.dataset.line), Number(link.dataset.column));
});

function goTo(line, column) {
  const lines = text.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, it) => sum + it.length + 1, 0);
  const at = start + Math.max(0, column - 1);
  text.focus();
  text.setSelectionRange(at, start + (lines[line - 1]?.length ?? 0));
  const height = text.scrollHeight / Math.max(1, lines.length);
  text.scrollTop = Math.max(0, (line - 4) * height);
}

text.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => send(null), TYPING);
});
