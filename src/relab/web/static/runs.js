// The table of runs: filter, sort, columns, choice, labels; the address holds all of it.
"use strict";
(() => {
  const form = $("#filter"), table = $("#table"), bar = $("#chosen");
  const chosen = new Map();  // key of a group -> its label
  const open = new Set();  // groups whose runs are shown
  let loading = null, late = null, at = "";

  const wanted = () => {
    const params = new URLSearchParams();
    for (const [key, value] of new FormData(form)) {
      const usual = { q: "", value: "last", sort: "age", cols: "", step: "" };
      if (value !== usual[key] && !(key === "step" && form.value.value !== "at")) params.set(key, value);
    }
    const top = relab.params().get("top");
    if (top) params.set("top", top);
    return params;
  };

  const load = async (changed = [], live = false) => {
    if (live && loading) return soon(changed);  // what is under way must come: runs may change faster than a table is made
    const params = wanted();
    history.replaceState(null, "", "/runs" + (params.size ? "?" + params : ""));
    loading && loading.abort();
    const own = (loading = new AbortController());
    try {
      const answer = await fetch("/runs/table?" + params, { signal: own.signal });
      const text = await answer.text();
      table.innerHTML = text;
      dress(changed);
    } catch (error) {
      if (error.name !== "AbortError") relab.toast("the server does not answer");
    } finally {
      if (loading === own) loading = null;
    }
  };
  const soon = (changed, live = true) => { clearTimeout(late); late = setTimeout(() => load(changed, live), 160); };
  relab.changed = () => load();

  const dress = (changed = []) => {
    for (const body of $$("tbody.group", table)) {
      $("input", body).checked = chosen.has(body.dataset.key);
      fold(body, open.has(body.dataset.key));
      if ($$("tr.seed", body).some((row) => changed.includes(row.dataset.run))) $("tr.row", body).classList.add("flash");
      if (body.dataset.key === at) $("tr.row", body).classList.add("at");
    }
  };
  const fold = (body, yes) => {
    const button = $(".fold", body);
    button && button.setAttribute("aria-expanded", String(yes));
    $$("tr.seed", body).forEach((row) => (row.hidden = !yes));
    open[yes ? "add" : "delete"](body.dataset.key);
  };

  const show = () => {
    bar.hidden = !chosen.size;
    $("span", bar).textContent = chosen.size === 1 ? "1 group" : `${chosen.size} groups`;
    $("a", bar).href = "/compare?" + new URLSearchParams([...chosen.keys()].map((key) => ["g", key]));
  };
  const choose = (body, yes) => {
    if (yes) chosen.set(body.dataset.key, $(".name a", body).textContent);
    else chosen.delete(body.dataset.key);
    $("input", body).checked = yes;
    show();
  };

  form.addEventListener("submit", (event) => { event.preventDefault(); load(); });
  form.addEventListener("input", () => {
    form.step.hidden = form.value.value !== "at";
    for (const chip of $$(".chip")) chip.setAttribute("aria-pressed", String(form.q.value.includes(chip.dataset.add)));
    soon([], false);
  });
  for (const chip of $$(".chip"))
    chip.onclick = () => {
      const word = chip.dataset.add, text = form.q.value;
      form.q.value = (text.includes(word) ? text.replace(word, "") : text + " " + word).replace(/\s+/g, " ").trim();
      form.dispatchEvent(new Event("input"));
    };

  table.addEventListener("click", async (event) => {
    const sort = event.target.closest("[data-sort]"), body = event.target.closest("tbody.group");
    if (sort) {
      event.preventDefault();
      form.sort.value = form.sort.value === sort.dataset.sort ? "-" + sort.dataset.sort : sort.dataset.sort;
      return load();
    }
    if (event.target.id === "more") {
      event.preventDefault();
      relab.set({ top: new URL(event.target.href).searchParams.get("top") });
      return load();
    }
    if (!body) return;
    const star = event.target.closest(".star"), seed = event.target.closest("tr.seed");
    if (star) {
      const body_ = seed ? { runs: [seed.dataset.run] } : { groups: [body.dataset.key] };
      return relab.act("star", { ...body_, on: star.dataset.on !== "true" });
    }
    if (event.target.closest(".fold")) fold(body, $(".fold", body).getAttribute("aria-expanded") !== "true");
    else if (event.target.matches("input[type=checkbox]")) choose(body, event.target.checked);
  });
  table.addEventListener("change", (event) => {
    if (event.target.name !== "col") return;
    const keys = $$("input[name=col]:checked", table).map((box) => box.value);
    form.cols.value = keys.length ? keys.join(",") : "none";
    load();
  });

  bar.addEventListener("click", async (event) => {
    const what = event.target.dataset.do, groups = [...chosen.keys()];
    if (what === "clear") { chosen.clear(); show(); dress(); }
    if (what === "tag") tag(groups);
    if (what === "note") note(groups);
    if (what === "archive") { await relab.act("archive", { groups }); chosen.clear(); show(); }
  });
  const tag = async (groups) => {
    const word = await relab.ask("Tag (several with blanks)");
    if (word) relab.act("tag", { groups, tag: word, on: true });
  };

  const note = async (groups, before = "") => {
    const text = await relab.ask("Note", before);
    if (text !== null) relab.act("note", { groups, text });
  };

  // ---- Keys: the row one stands on

  const rows = () => $$("tbody.group", table), here = () => rows().find((body) => body.dataset.key === at);
  const step = (by) => {
    const all = rows();
    if (!all.length) return;
    const next = all[Math.min(Math.max(all.indexOf(here()) + by, 0), all.length - 1)];
    $$(".at", table).forEach((row) => row.classList.remove("at"));
    at = next.dataset.key;
    $("tr.row", next).classList.add("at");
    $("tr.row", next).scrollIntoView({ block: "nearest" });
  };
  const withRow = (run) => () => here() && run(here());
  Object.assign(relab.keys, {
    j: () => step(1), k: () => step(-1),
    Enter: withRow((body) => $(".name a", body).click()),
    x: withRow((body) => choose(body, !chosen.has(body.dataset.key))),
    c: () => chosen.size && $("a", bar).click(),
    s: withRow((body) => $("tr.row .star", body).click()),
    t: withRow((body) => tag([body.dataset.key])),
    n: withRow((body) => note([body.dataset.key], $(".remark", body)?.textContent || "")),
    e: withRow((body) => relab.act("archive", { groups: [body.dataset.key] })),
    o: withRow((body) => fold(body, !open.has(body.dataset.key))),
  });

  relab.listen();
  relab.on("runs", (news) => soon(news.changed));
  relab.on("findings", () => soon());
  dress();
})();
