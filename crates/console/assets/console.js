// What every page does: local times, copying, questions before dangerous forms.

/** Shows times in the reader's own zone; UTC stays in the title. The year is shown if it is another one. */
export function localTimes(root) {
  const language = document.documentElement.lang;
  const parts = { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
  const near = new Intl.DateTimeFormat(language, parts);
  const far = new Intl.DateTimeFormat(language, { ...parts, year: "numeric" });
  const year = new Date().getFullYear();
  for (const time of root.querySelectorAll("time[datetime]")) {
    const date = new Date(time.dateTime);
    if (Number.isNaN(date.getTime())) continue;
    time.textContent = (date.getFullYear() === year ? near : far).format(date);
  }
}

/** Shows the buttons that need scripts. */
export function enable(root) {
  for (const button of root.querySelectorAll("[data-copy], .find-tool, button.inherit, button.add-condition, button.edit-condition, button.remove-condition")) button.hidden = false;
  for (const hint of root.querySelectorAll(".needs-script")) hint.hidden = true;
  if (root !== document) localTimes(root);
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  if (!source) return;
  await navigator.clipboard.writeText(source.textContent);
  const before = button.textContent;
  button.textContent = document.body.dataset.copied;
  setTimeout(() => { button.textContent = before; }, 1500);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
});

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  const menu = document.querySelector("details.menu[open]");
  if (menu && event.key === "Escape") {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

enable(document);
// Formatting times takes longer than anything else here, so the page is shown first.
if (document.readyState === "complete") localTimes(document);
else window.addEventListener("load", () => localTimes(document));
