// What the pages do beyond links and forms. Every page works without it.
"use strict";

// Forms with data-live: show what the button would show, while somebody types.
for (const form of document.querySelectorAll("form[data-live]")) {
  const target = document.getElementById(form.getAttribute("data-live"));
  let timer, running;
  const show = async () => {
    if (!form.checkValidity()) return;
    running?.abort();
    running = new AbortController();
    target.setAttribute("aria-busy", "true");
    const fields = new URLSearchParams(new FormData(form));
    try {
      const answer = await fetch(form.getAttribute("data-preview"), {
        method: "POST", body: fields, signal: running.signal,
        headers: { "X-Fragment": "1", Accept: "text/html" },
      });
      if (!answer.ok && answer.status !== 422) return location.reload();
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      target.replaceChildren(...page.body.childNodes);
      target.setAttribute("aria-busy", "false");
    } catch (problem) {
      if (problem.name !== "AbortError") target.setAttribute("aria-busy", "false");
    }
  };
  const soon = () => { clearTimeout(timer); timer = setTimeout(show, 300); };
  form.addEventListener("input", soon);
  form.addEventListener("change", soon);
  if (target.dataset.fresh !== "1") soon();
}

// Parts with data-refresh: look again every few seconds while something is under way.
for (const part of document.querySelectorAll("[data-refresh]")) {
  const look = async () => {
    if (document.hidden || part.contains(document.activeElement)) return setTimeout(look, 2000);
    const answer = await fetch(part.dataset.refresh, { headers: { "X-Fragment": "1", Accept: "text/html" } });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    part.replaceChildren(...page.body.childNodes);
    if (part.querySelector("[data-busy]")) setTimeout(look, 2000);
  };
  if (part.querySelector("[data-busy]")) setTimeout(look, 1500);
}

// Fields that belong to one choice of a select.
for (const select of document.querySelectorAll("select[data-chooses]")) {
  const choose = () => {
    for (const part of document.querySelectorAll(`[data-for-${select.dataset.chooses}]`)) {
      const fits = part.getAttribute(`data-for-${select.dataset.chooses}`).split(" ").includes(select.value);
      part.hidden = !fits;
      for (const field of part.querySelectorAll("input,select,textarea")) field.disabled = !fits;
    }
  };
  select.addEventListener("change", choose);
  choose();
}

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim());
    button.textContent = "Copied";
  });
}
