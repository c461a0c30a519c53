// What every page has: the stream of events, actions with the token, keys, bell, light and dark, messages.
"use strict";
const relab = (window.relab = { listeners: {}, keys: {} });
const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
relab.findings = Number(document.documentElement.dataset.findings);  // the version that this page was made with
relab.runs = Number(document.documentElement.dataset.runs);
relab.colours = document.documentElement.dataset.colours.split(" ");

// ---- Messages and actions

relab.toast = (text, action, run) => {
  const line = document.createElement("div");
  line.textContent = text;
  if (action) {
    const button = document.createElement("button");
    button.textContent = action;
    button.onclick = () => { line.remove(); run(); };
    line.append(button);
  }
  $("#toast").append(line);
  setTimeout(() => line.remove(), action ? 9000 : 5000);
};

relab.post = async (verb, body, quiet = false) => {  // quiet: who asked says himself what did not work
  const answer = await fetch("/act/" + verb, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Relab-Token": $('meta[name="relab-token"]').content },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  let said = {};
  try { said = JSON.parse(text); } catch { said = { error: text }; }
  const why = said.error || "that did not work";
  if (!answer.ok && !quiet) relab.toast(why);
  if (!answer.ok) throw new Error(why);
  return said;
};

relab.act = async (verb, body, quiet = false) => {
  const said = await relab.post(verb, body, quiet);
  relab.toast(said.said, verb === "undo" ? "" : "Undo", relab.undo);
  relab.changed && relab.changed();
  return said;
};
relab.undo = () => {
  for (const line of $$("#toast > div")) if ($("button", line)) line.remove();  // what they offered to undo is not the last change any more
  return relab.act("undo", {});
};

relab.ask = (label, text = "") => new Promise((done) => {
  const dialog = $("#ask"), input = $("input", dialog);
  $("span", dialog).textContent = label;
  input.value = text;
  dialog.onclose = () => done(dialog.returnValue === "yes" ? input.value : null);
  dialog.returnValue = "";
  dialog.showModal();
  input.select();
});
$("#ask form").addEventListener("keydown", (event) => {
  if (event.key === "Enter") { event.preventDefault(); $("#ask").close("yes"); }
});

// ---- State of the view, in the address

relab.params = () => new URLSearchParams(location.search);
relab.set = (changes) => {
  const params = relab.params();
  for (const [key, value] of Object.entries(changes)) {
    params.delete(key);
    for (const each of Array.isArray(value) ? value : [value]) if (each !== null && each !== "" && each !== undefined) params.append(key, each);
  }
  const text = params.toString();
  history.replaceState(null, "", location.pathname + (text ? "?" + text : "") + location.hash);
};

// ---- The stream

relab.on = (kind, listener) => (relab.listeners[kind] ||= []).push(listener);
relab.listen = (query = "") => {
  relab.stream && relab.stream.close();
  relab.heard = query;
  const light = $("#live"), stream = (relab.stream = new EventSource("/live" + (query ? "?" + query : "")));
  stream.onopen = () => { light.className = "live on"; light.title = "live: changes appear by themselves"; };
  stream.onerror = () => { light.className = "live off"; light.title = "the server does not answer; trying again"; };
  for (const kind of ["rows", "runs", "findings", "trouble"])
    stream.addEventListener(kind, (event) => {
      const news = JSON.parse(event.data);
      if (kind === "findings" && news.version === relab.findings) return;  // the page has them already
      if (kind === "findings") relab.findings = news.version;
      if (kind === "runs" && news.version === relab.runs) return;
      if (kind === "runs") relab.runs = news.version;
      (relab.listeners[kind] || []).forEach((each) => each(news));
    });
};
// A browser opens six connections to a server, and each stream holds one: a tab that nobody sees lets go of its own after
// a while, unless its bell is on, and catches up when it is seen again.
let unseen = null;
addEventListener("visibilitychange", () => {
  clearTimeout(unseen);
  if (document.hidden && !localStorage.getItem("relab-bell")) unseen = setTimeout(() => { relab.stream && relab.stream.close(); relab.let_go = true; }, 3000);
  if (!document.hidden && relab.let_go) {
    relab.let_go = false;
    relab.listen(relab.heard);
    for (const kind of ["runs", "rows", "findings"]) (relab.listeners[kind] || []).forEach((each) => each({ changed: [], gone: [], runs: [], new: [] }));
  }
});
addEventListener("pagehide", () => relab.stream && relab.stream.close());
addEventListener("pageshow", (event) => event.persisted && location.reload());
relab.on("runs", () => $("#progress")?.remove());  // the folder is read
relab.on("trouble", (news) => { $("#live").className = "live off"; $("#live").title = news.why; });
relab.on("findings", (news) => {
  for (const finding of news.new.slice(0, 3)) relab.toast(`${finding.severity}: ${finding.slug} in ${finding.where}`);
  if (news.new.length && localStorage.getItem("relab-bell")) relab.ring();
});

// ---- Bell, light and dark

relab.ring = () => {
  const sound = (relab.sound ||= new AudioContext()), tone = sound.createOscillator(), loud = sound.createGain();
  tone.frequency.value = 880;
  loud.gain.setValueAtTime(0.15, sound.currentTime);
  loud.gain.exponentialRampToValueAtTime(0.001, sound.currentTime + 0.9);
  tone.connect(loud).connect(sound.destination);
  tone.start();
  tone.stop(sound.currentTime + 0.9);
  if (document.hidden) document.title = "● " + document.title.replace(/^● /, "");  // the tab says it as well, until it is seen
};
addEventListener("visibilitychange", () => { if (!document.hidden) document.title = document.title.replace(/^● /, ""); });
// A browser lets no page sound before it was clicked or typed into: of a bell that was on before, the first touch counts.
const wake = () => { if (localStorage.getItem("relab-bell")) (relab.sound ||= new AudioContext()).resume(); };
for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, wake, { once: true });
const bell = $("#bell"), showBell = () => bell.setAttribute("aria-pressed", String(!!localStorage.getItem("relab-bell")));
bell.onclick = () => {
  if (localStorage.getItem("relab-bell")) localStorage.removeItem("relab-bell");
  else { localStorage.setItem("relab-bell", "1"); relab.ring(); }
  showBell();
};
showBell();
$("#theme").onclick = () => {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const next = { "": dark ? "light" : "dark", light: dark ? "" : "dark", dark: dark ? "light" : "" }[root.dataset.theme || ""];
  if (next) { root.dataset.theme = next; localStorage.setItem("relab-theme", next); }
  else { delete root.dataset.theme; localStorage.removeItem("relab-theme"); }
  dispatchEvent(new Event("relab-theme"));
};
relab.dark = () => {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("relab-theme")));

// ---- Keys

$("#keys").onclick = () => $("#help").showModal();
let before = "";
addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=checkbox]):not([type=range]), textarea, select, dialog[open]");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing) {
    if (event.key === "Escape" && event.target.matches("input")) { event.preventDefault(); event.target.blur(); }  // what was typed stays
    return;
  }
  const pages = { t: "/today", r: "/runs", c: "/compare", n: "/notebook" };
  if (before === "g" && pages[event.key]) { location.href = pages[event.key]; return; }
  before = event.key;
  const own = { "/": () => $("input[type=search]")?.focus(), "?": () => $("#help").showModal(), z: relab.undo, b: () => bell.click(), d: () => $("#theme").click() };
  const run = relab.keys[event.key] || own[event.key];
  if (run) { event.preventDefault(); run(event); }
});
