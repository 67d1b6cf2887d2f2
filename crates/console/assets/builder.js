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

/** What each row shows, so that the server answers with those that differ. */
function marks() {
  const rows = draft.querySelectorAll(".choice");
  return Array.from(rows, (row) => (touched.has(row) ? "-" : row.dataset.mark)).join(" ");
}

async function send(edit) {
  const mine = ++turn;
  const body = new URLSearchParams({ document: text.value, marks: marks(), ...edit });
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

function parsed(html) {
  const page = new DOMParser().parseFromString(html, "text/html");
  enable(page);
  return page;
}

/** Replaces what follows from the document, and keeps the focus. */
function show(answer) {
  const focus = document.activeElement;
  const row = focus?.closest?.(".choice");
  const kept = row && { number: row.dataset.number, kind: focus.className.split(" ")[0] };
  const page = parsed(answer.html);
  if (answer.choices) replaceAround(page);
  else draft.replaceChildren(...page.body.childNodes);
  for (const [number, html] of Object.entries(answer.choices ?? {})) {
    draft.querySelector(`.choice[data-number="${number}"]`)?.replaceWith(parsed(html).body.firstElementChild);
  }
  touched.clear();
  draft.querySelector(".find-tool")?.dispatchEvent(new Event("input", { bubbles: true }));
  if (answer.error) {
    const note = document.createElement("p");
    note.className = "flash error";
    note.setAttribute("role", "alert");
    note.textContent = answer.error;
    draft.prepend(note);
  }
  if (!kept || document.contains(focus)) return;
  const now = draft.querySelector(`.choice[data-number="${kept.number}"]`);
  const field = kept.kind ? now?.querySelector(`.${kept.kind}`) : null;
  (field ?? now?.querySelector("input:checked"))?.focus();
}

/** Replaces everything but the rows of the builder. */
function replaceAround(page) {
  const builder = draft.querySelector(".builder");
  const nodes = [...page.body.childNodes];
  const place = nodes.findIndex((node) => node.classList?.contains("builder"));
  for (const node of [...draft.childNodes]) if (node !== builder) node.remove();
  builder.before(...nodes.slice(0, place));
  builder.after(...nodes.slice(place + 1));
}

function editOf(choice, effect) {
  const { section, key } = choice.dataset;
  return { section, key, effect, max: "30", window: "minute" };
}

/** The edit of one limit. */
function amountOf(choice, amount) {
  const { section, key } = choice.dataset;
  const value = (name) => amount.querySelector(name).value;
  return { section, key, effect: "amount", at: amount.dataset.at, max: value(".max"), window: value(".window") };
}

draft.addEventListener("change", (event) => {
  const choice = event.target.closest(".choice");
  if (!choice || event.target.closest(".condition-form")) return;
  touched.add(choice);
  const amount = event.target.closest(".amount");
  if (amount) send(amountOf(choice, amount));
  else if (event.target.matches("input[type=radio]")) send(editOf(choice, event.target.value));
});

/** Opens the fields of a condition: those of `item`, or empty ones. */
function openCondition(choice, item) {
  const open = choice.querySelector(".condition-form");
  if (open) closeCondition(open);
  const fields = document.getElementById("condition-form").content.firstElementChild.cloneNode(true);
  if (item) {
    fields.dataset.at = item.dataset.at;
    fields.querySelector(".c-list").value = item.dataset.list;
    // A condition is moved to another list by removing it.
    fields.querySelector(".c-list").disabled = true;
    fields.querySelector(".c-path").value = item.dataset.path;
    fields.querySelector(".c-op").value = item.dataset.op;
    fields.querySelector(".c-value").value = item.dataset.value;
    item.classList.add("editing");
    item.append(fields);
  } else {
    choice.append(fields);
  }
  fields.querySelector(".c-path").focus();
}

function closeCondition(fields) {
  fields.closest("li")?.classList.remove("editing");
  fields.remove();
}

function applyCondition(fields) {
  const value = (name) => fields.querySelector(name).value;
  const path = fields.querySelector(".c-path");
  if (!path.value.trim()) return path.focus();
  const choice = fields.closest(".choice");
  touched.add(choice);
  return send({ section: choice.dataset.section, key: choice.dataset.key, effect: "set", list: value(".c-list"), at: fields.dataset.at ?? "", path: path.value, op: value(".c-op"), value: value(".c-value") });
}

function removeCondition(item) {
  const choice = item.closest(".choice");
  touched.add(choice);
  send({ section: choice.dataset.section, key: choice.dataset.key, effect: "remove", list: item.dataset.list, at: item.dataset.at, path: "", op: "", value: "" });
}

draft.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  const choice = button?.closest(".choice");
  if (!choice) return;
  const [item, fields] = [button.closest("li"), button.closest(".condition-form")];
  if (button.matches(".inherit")) send(editOf(choice, "inherit"));
  else if (button.matches(".add-condition")) openCondition(choice, null);
  else if (button.matches(".edit-condition")) openCondition(choice, item);
  else if (button.matches(".remove-condition")) removeCondition(item);
  else if (button.matches(".apply-condition")) applyCondition(fields);
  else if (button.matches(".cancel-condition")) closeCondition(fields);
});

/** Shows only the tools whose name or server has this text. */
draft.addEventListener("input", (event) => {
  if (!event.target.matches(".find-tool")) return;
  const wanted = event.target.value.trim().toLowerCase();
  for (const row of draft.querySelectorAll(".choice[data-section=tools]")) row.hidden = !row.dataset.key.toLowerCase().includes(wanted);
});

// Enter in a field of the builder edits the document; it does not save it.
draft.addEventListener("keydown", (event) => {
  const fields = event.target.closest(".condition-form");
  if (event.key === "Escape" && fields) closeCondition(fields);
  if (event.key !== "Enter" || !event.target.matches("input, select")) return;
  event.preventDefault();
  if (fields) applyCondition(fields);
  else if (!event.target.matches(".find-tool")) event.target.dispatchEvent(new Event("change", { bubbles: true }));
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

if (text.dataset.open) goTo(Number(text.dataset.open), 1);

text.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => send(null), TYPING);
});
