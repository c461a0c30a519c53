// Today and Notebook: what takes longer is asked for when the page is there; decisions go back with the token.
"use strict";
(() => {
  const more = $("#more");
  let turn = 0;
  const typed = () => $$("input[data-was]").some((input) => input.value !== input.dataset.was || input === document.activeElement);
  const load = async (gently = false) => {  // gently: what somebody types is not taken away
    const mine = ++turn;
    if (!more) return;
    const answer = await fetch(more.dataset.src), text = await answer.text();
    if (mine !== turn || (gently && typed())) return;  // a later question has the newer answer
    more.innerHTML = answer.ok ? text : "<p class='dim'></p>";
    if (!answer.ok) more.firstChild.textContent = "this could not be worked out";
  };
  load();
  relab.changed = () => load();

  const seen = $("#seen");
  if (seen) seen.onclick = async () => { seen.disabled = true; await relab.post("seen", {}); location.reload(); };
  addEventListener("click", async (event) => {
    const form = event.target.closest(".proposal"), what = event.target.dataset.do;
    if (!form || !what) return;
    const edits = {};
    for (const input of $$("input[data-was]", form)) if (input.value !== input.dataset.was) edits[input.name] = input.value;
    const buttons = $$("button", form), id = form.dataset.id;
    for (const each of buttons) each.disabled = true;
    $(".problem", form)?.remove();
    const loop = form.dataset.loop, values = loop ? Object.fromEntries($$("input[data-was]", form).map((input) => [input.name, input.value])) : {};
    try {
      await (loop ? relab.act(what, { loop, values, rationale: form.elements["why?"].value }, true) : what === "refuse" ? relab.act("refuse", { id }, true) : relab.act("approve", { id, edits, queue: what === "queue" }, true));
    } catch (error) { refused(form, error.message); }
    for (const each of buttons) each.disabled = false;
  });
  addEventListener("submit", (event) => { if (event.target.matches(".proposal")) event.preventDefault(); });  // Enter decides nothing
  const refused = (form, why) => {  // stays where the value is, until the next try
    const line = document.createElement("p");
    line.className = "problem";
    line.setAttribute("role", "alert");
    line.textContent = why;
    $("table", form).after(line);
    ($$("input[data-was]", form).find((input) => input.value !== input.dataset.was) || $("input", form))?.focus();
  };

  let late = null;
  const again = () => { clearTimeout(late); late = setTimeout(async () => {
    const answer = await fetch(location.href), fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const selector of ["#ended", "#findings", ".title.day .answer"]) {
      const now = $(selector), next = $(selector, fresh);
      if (now && next && now.innerHTML !== next.innerHTML) now.replaceWith(next);
    }
  }, 500); };
  relab.listen();
  relab.on("runs", () => $("main > .empty") ? location.reload() : again());  // the first runs have come
  relab.on("findings", again);
  relab.on("findings", () => typed() || load(true));  // a proposal follows from findings
})();
