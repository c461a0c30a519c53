// The page of a group or a run: its charts, its toolbar, what comes in while it trains.
"use strict";
(() => {
  const page = $("#page");
  relab.source = page.dataset.src;
  const steps = [0, 2, 5, 10, 20, 50, 100, 200, 500], smooth = $("#smooth"), view = relab.view;
  $$(".chart").forEach(relab.chart);

  const shown = () => {
    smooth.value = Math.max(0, steps.findIndex((rows) => rows >= view.smooth));
    $("#smoothed").textContent = view.smooth ? `${view.smooth} rows` : "off";
    smooth.setAttribute("aria-valuetext", $("#smoothed").textContent);
    $("#marks").checked = view.marks;
    $("#reset").hidden = view.from === null;
  };
  relab.loaded = (chart) => {
    if (!chart.figure.classList.contains("lead")) return;
    const select = $("#x"), axes = chart.data.axes;
    if (select.options.length !== axes.length) select.replaceChildren(...axes.map(([value, text]) => new Option(text, value)));
    select.value = axes.some(([value]) => value === view.x) ? view.x : "steps";
    $("#log").checked = !!chart.log();
    $("#log").disabled = chart.data.log_y === "no";
  };
  if ($("#x")) $("#x").onchange = (event) => { view.x = event.target.value; Object.assign(view, { from: null, to: null }); relab.set({ x: view.x === "steps" ? null : view.x, from: null, to: null }); shown(); relab.again(); };
  smooth.oninput = () => { view.smooth = steps[smooth.value]; relab.set({ smooth: view.smooth || null }); shown(); relab.again(); };
  $("#log").onchange = (event) => { view.log = event.target.checked; relab.set({ log: view.log ? 1 : 0 }); relab.charts.forEach((chart) => chart.data && chart.draw()); };
  $("#marks").onchange = (event) => { view.marks = event.target.checked; relab.set({ marks: view.marks ? null : 0 }); relab.charts.forEach((chart) => chart.plot && chart.plot.redraw()); };
  $("#reset").onclick = () => relab.zoom(null, null);
  relab.keys.l = () => $("#log").click();

  const all = $("#all"), find = $("#find");
  const filter = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean), every = all && all.dataset.open;
    for (const figure of $$(".chart.small")) {
      const text = (figure.dataset.metric + " " + figure.dataset.title).toLowerCase(), fits = words.every((word) => text.includes(word));
      figure.hidden = words.length ? !fits : "more" in figure.dataset && !every;
    }
    relab.set({ find: find.value || null });
  };
  if (all) all.onclick = () => { all.dataset.open = "1"; all.hidden = true; filter(); };
  if (find) { find.value = relab.params().get("find") || ""; find.oninput = filter; if (find.value) filter(); }

  for (const button of $$(".play")) button.onclick = () => {
    const films = $$("video", button.closest("h3").nextElementSibling), stop = films.some((film) => !film.paused);
    for (const film of films) { film.currentTime = 0; stop ? film.pause() : film.play(); }
  };
  const details = $("#details");
  details.addEventListener("toggle", async () => {
    if (!details.open || details.dataset.read) return;
    details.dataset.read = "1";
    const answer = await fetch(details.dataset.src);
    $("div", details).outerHTML = await answer.text();
    relab.savable(details);
  });

  // ---- Star, tags, note, archive

  const labels = () => $("#labels"), target = () => (labels().dataset.run ? { runs: [labels().dataset.run] } : { groups: [labels().dataset.group] });
  const deeds = {
    star: () => relab.act("star", { ...target(), on: labels().dataset.on !== "true" }),
    tag: async () => { const word = await relab.ask("Tag (several with blanks)"); if (word) relab.act("tag", { ...target(), tag: word, on: true }); },
    untag: (button) => relab.act("tag", { ...target(), tag: button.dataset.tag, on: false }),
    note: async () => { const text = await relab.ask("Note", labels().dataset.note); if (text !== null) relab.act("note", { ...target(), text }); },
    archive: async () => { await relab.act("archive", target()); location.href = "/runs"; },
  };
  addEventListener("click", (event) => { const button = event.target.closest("#labels [data-do]"); if (button) deeds[button.dataset.do](button); });
  Object.assign(relab.keys, { s: deeds.star, t: deeds.tag, n: deeds.note, e: () => $("#labels [data-do=archive]")?.click() });
  relab.changed = () => numbers();

  // ---- While it trains: rows as they come, the numbers when the run has changed, findings as they fire

  let late = null, asking = false;
  const numbers = async () => {
    if (asking) return soon();
    asking = true;
    const answer = await fetch(location.pathname).finally(() => (asking = false));
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!relab.charts.length && $(".chart", fresh)) return location.reload();  // the first rows have come
    for (const figure of $$(".chart.small", fresh)) {  // a metric that was not logged before
      if ($$(".chart").some((each) => each.dataset.metric === figure.dataset.metric)) continue;
      relab.chart($(".charts").appendChild(document.importNode(figure, true)));
    }
    for (const selector of [".right", ".answer", "#labels"]) {
      const now = $(selector), next = $(selector, fresh);
      if (now && next && now.outerHTML !== next.outerHTML) {
        const open = $$("details", now).map((each) => each.open);
        now.replaceWith(next);
        $$("details", next).forEach((each, i) => (each.open = open[i] ?? each.open));
      }
    }
  };
  relab.listen(relab.source);
  const soon = () => { clearTimeout(late); late = setTimeout(numbers, 400); };
  relab.on("rows", () => { relab.again(); soon(); });
  relab.on("runs", soon);
  relab.on("findings", async () => {
    await relab.cards();
    relab.again();
  });
  shown();
})();
