// Keys for lists: j and k move, other keys press what the chosen item marks with data-key. Everything works without.
(() => {
  const items = () => [...document.querySelectorAll("[data-item]")];
  const chosen = () => document.activeElement?.closest?.("[data-item]");
  const typing = (target) => target.matches?.("input:not([type=checkbox]), textarea, select, [contenteditable]");

  function move(step) {
    const all = items();
    const at = all.indexOf(chosen());
    const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  }

  function press(key) {
    const item = chosen() ?? (key === "u" ? null : items()[0]);
    const found = item?.querySelector(`[data-key="${key}"]`) ?? (key === "u" && document.querySelector('[data-key="u"]'));
    if (!found) return;
    if (item) sessionStorage.setItem("item", items().indexOf(item));
    found.click();
    if (key === "e") found.parentElement.querySelector("textarea")?.focus();
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && typing(event.target)) return void (chosen() ?? document.body).focus();
    if (typing(event.target)) return;
    if (event.key === "j" || event.key === "k") move(event.key === "j" ? 1 : -1);
    else if (event.key === "/") document.querySelector("#q") ? document.querySelector("#q").focus() : document.querySelector('nav a[href$="/search"]')?.click();
    else if (/^[aerux]$/.test(event.key)) press(event.key);
    else return;
    event.preventDefault();
  });

  // After a decision the next proposal is chosen, where the decided one stood.
  const at = sessionStorage.getItem("item");
  sessionStorage.removeItem("item");
  if (at !== null) items()[Math.min(Number(at), items().length - 1)]?.focus();
  const question = location.pathname.endsWith("/search") && document.querySelector("#q");
  if (question && !location.search) question.focus();
  // What was typed before htmx listened is searched for too; htmx starts in a timer that it set before this one.
  if (question) setTimeout(() => question.value !== question.defaultValue && question.dispatchEvent(new Event("input", { bubbles: true })));
})();
