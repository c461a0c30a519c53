// The page of a comparison: which groups, which number; the answer comes from the server.
"use strict";
(() => {
  const form = $("#choose"), result = $("#result");
  if (!form) {  // nothing is there to be compared, until the first runs come
    relab.listen();
    return relab.on("runs", () => location.reload());
  }
  const go = () => {
    const params = new URLSearchParams();
    for (const [key, value] of new FormData(form)) if (value) params.append(key, value);
    location.search = params;
  };
  form.addEventListener("change", (event) => { if (event.target.name && event.target.name !== "g") go(); });
  for (const field of $$("fieldset", form)) field.onclick = (event) => {
    if (!event.target.matches(".all, .none")) return;
    for (const label of $$("label:not([hidden])", field)) $("input", label).checked = event.target.className === "all";
  };
  form.addEventListener("submit", (event) => { event.preventDefault(); go(); });
  $("#narrow").oninput = (event) => {
    const word = event.target.value.toLowerCase();
    for (const label of $$(".boxes label")) label.hidden = !label.textContent.toLowerCase().includes(word);
  };
  if (!result) return relab.listen();

  const load = async () => {
    const answer = await fetch(result.dataset.src), text = await answer.text();
    if (!answer.ok) {
      const fresh = new DOMParser().parseFromString(text, "text/html");
      result.replaceChildren(Object.assign(document.createElement("p"), { className: "problem", textContent: $(".empty p", fresh)?.textContent || text.slice(0, 400) }));
      return;
    }
    result.innerHTML = text;
    $(".middle", result)?.replaceWith($("#middle"));
    relab.savable(result);
    for (const button of $$(".copy", result)) button.onclick = () => {
      navigator.clipboard.writeText(button.closest("h3").nextElementSibling.textContent).then(() => relab.toast("copied"), () => relab.toast("the browser does not let pages copy"));
    };
    const select = form.metric;
    for (const option of $$("#metrics option", result)) if (![...select.options].some((each) => each.value === option.value)) select.add(new Option(`${option.textContent}`, option.value));
  };
  load();

  const view = relab.view, steps = [0, 2, 5, 10, 20, 50, 100, 200, 500], smooth = $("#smooth");
  relab.source = $("#page").dataset.src;
  $$(".chart").forEach(relab.chart);
  relab.loaded = (chart) => {
    $("b", chart.figure).textContent = chart.data.title;
    const select = $("#x");
    if (select.options.length !== chart.data.axes.length) select.replaceChildren(...chart.data.axes.map(([value, text]) => new Option(text, value)));
    select.value = view.x;
    $("#log").checked = !!chart.log();
    $("#log").disabled = chart.data.log_y === "no";
  };
  $("#x").onchange = (event) => { view.x = event.target.value; relab.set({ x: view.x === "steps" ? null : view.x }); relab.zoom(null, null); };
  smooth.oninput = () => { view.smooth = steps[smooth.value]; $("#smoothed").textContent = view.smooth ? view.smooth + " rows" : "off"; relab.set({ smooth: view.smooth || null }); relab.again(); };
  $("#log").onchange = (event) => { view.log = event.target.checked; relab.set({ log: view.log ? 1 : 0 }); relab.charts.forEach((chart) => chart.data && chart.draw()); };
  $("#reset").onclick = () => relab.zoom(null, null);
  $("#marks").checked = view.marks;
  $("#marks").onchange = (event) => { view.marks = event.target.checked; relab.set({ marks: view.marks ? null : 0 }); relab.charts.forEach((chart) => chart.data && chart.draw()); };
  relab.listen(relab.source);
  relab.on("rows", () => relab.again());
  relab.on("findings", () => { relab.cards(); relab.again(); });
})();
