// Drawings that stand in a page as they are: each can be had as SVG or PNG, as the charts can.
"use strict";
(() => {
  const give = (href, name) => { const link = document.createElement("a"); link.href = href; link.download = name; link.click(); };
  const named = (svg) => (svg.getAttribute("aria-label") || "drawing").slice(0, 60).replace(/[^\p{L}\p{N}.-]+/gu, "_").replace(/^_|_$/g, "");
  const alone = (svg) => {  // without the page around it: its own ink, paper and size
    const copy = svg.cloneNode(true), look = getComputedStyle(document.documentElement), [, , wide, high] = svg.getAttribute("viewBox").split(" ");
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", wide);
    copy.setAttribute("height", high);
    copy.setAttribute("color", look.getPropertyValue("--ink").trim());
    const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [key, value] of Object.entries({ width: wide, height: high, fill: look.getPropertyValue("--paper").trim() })) paper.setAttribute(key, value);
    copy.prepend(paper);
    return { text: new XMLSerializer().serializeToString(copy), wide: +wide, high: +high };
  };
  const png = (svg) => {
    const { text, wide, high } = alone(svg), picture = new Image(), canvas = document.createElement("canvas");
    picture.onload = () => {
      [canvas.width, canvas.height] = [2 * wide, 2 * high];
      canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
      give(canvas.toDataURL("image/png"), named(svg) + ".png");
    };
    picture.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  };
  relab.savable = (within = document) => {
    for (const svg of $$("svg.curve", within)) {
      if (svg.nextElementSibling?.matches(".get")) continue;
      const box = document.createElement("p"), kinds = { SVG: () => give("data:image/svg+xml;charset=utf-8," + encodeURIComponent(alone(svg).text), named(svg) + ".svg"), PNG: () => png(svg) };
      box.className = "get";
      for (const [kind, run] of Object.entries(kinds)) {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = kind;
        button.onclick = run;
        box.append(button);
      }
      svg.after(box);
    }
  };
  relab.savable();
})();
