// Light, dark, or as the system: set before the first paint, so that nothing flashes.
(() => {
  const chosen = localStorage.getItem("relab-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
})();
