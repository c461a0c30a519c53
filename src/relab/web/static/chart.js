// Charts: every seed faint under a labelled band, the lowest and highest row of each column of the screen, all rows when
// zoomed in. A chart asks the server for what it can show; numbers in tables are never worked out here.
"use strict";
(() => {
  const DASHES = [[], [7, 4], [2, 3]];
  const LIFT = 1.35;  // on dark paper; style.css lifts the drawings and the marks of groups as much
  const tone = (place) => {
    const hex = relab.colours[place % relab.colours.length];
    const parts = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
    const mixed = relab.dark() ? parts.map((v) => Math.min(Math.round(v * LIFT), 255)) : parts;
    return (alpha = 1) => `rgb(${mixed.join(" ")} / ${alpha})`;
  };
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const alarm = (finding) => css(finding.severity === "error" ? "--error" : finding.severity === "warning" ? "--warning" : "--dim");
  const pen = document.createElement("canvas").getContext("2d"), ROWS = 4;  // for widths; lines of names over a chart
  const nice = (v) => {
    if (v === null || v === undefined) return "";
    const size = Math.abs(v);
    if (size >= 1e6) return v.toPrecision(4).replace(/\.?0+(e|$)/, "$1");
    if (size >= 100) return v.toLocaleString("en", { maximumFractionDigits: 1 });
    return size >= 1e-3 || v === 0 ? String(+v.toPrecision(4)) : v.toExponential(2);
  };
  const tick = (v, digits = 4, small = 0) => {
    for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (Math.abs(v) >= size) return +(v / size).toPrecision(digits) + unit;
    return Math.abs(v) >= 1e-3 || v === 0 ? String(+v.toPrecision(digits)) : v.toExponential(small);
  };
  const ticks = (splits) => {  // as short as they can be and still differ
    for (let digits = 1; digits < 12; digits++) {
      const texts = splits.map((v) => (v === null ? "" : tick(v, Math.max(digits, 4), digits - 1))), seen = texts.filter(Boolean);
      if (new Set(seen).size === seen.length) return texts;
    }
    return splits.map((v) => (v === null ? "" : String(v)));
  };
  const clock = (v) => (v >= 7200 ? +(v / 3600).toPrecision(3) + " h" : v >= 120 ? +(v / 60).toPrecision(3) + " min" : +v.toPrecision(3) + " s");

  class Chart {
    constructor(figure) {
      this.figure = figure;
      this.hidden = new Set(relab.params().getAll("hide"));
      this.size = figure.classList.contains("lead") ? () => (innerWidth < 760 ? 230 : 330) : () => 150;
      figure.innerHTML = '<figcaption><b></b> <span class="dim"></span><span class="get"><a download>SVG</a><button type="button">PNG</button><a download>CSV</a></span></figcaption><div class="plot"></div><div class="keys"></div><div class="tip" hidden></div>';
      $("b", figure).textContent = figure.dataset.title;
      $(".get button", figure).onclick = () => this.png();
      this.seen = false;
      new IntersectionObserver((entries) => {
        this.visible = entries[0].isIntersecting;
        if (this.visible && (!this.seen || this.stale)) this.load();
      }, { rootMargin: "200px" }).observe(figure);
      new ResizeObserver(() => this.fit()).observe($(".plot", figure));
    }

    query(extra = {}) {
      const view = relab.view, params = new URLSearchParams(relab.source);
      const fields = { metric: this.figure.dataset.metric, x: view.x, smooth: view.smooth || "", from: view.from, to: view.to, logx: view.logx ? 1 : "", ...extra };
      for (const [key, value] of Object.entries(fields)) if (value !== "" && value !== null && value !== undefined) params.set(key, value);
      return params;
    }

    async load() {
      this.seen = true;
      this.stale = false;
      if (this.asking) { this.owed = true; return; }  // one question at a time: rows that come faster than answers are drawn too
      [this.asking, this.owed] = [true, false];
      const width = Math.round($(".plot", this.figure).clientWidth * Math.min(devicePixelRatio, 2)) || 600;
      const asked = String(this.query({ width }));
      let data;
      try {
        const answer = await fetch("/api/curve?" + asked);
        data = await answer.json();
        if (!answer.ok) throw new Error(data.error);
      } catch (error) {
        if (!this.data) $(".plot", this.figure).textContent = String(error.message || error);
        return;
      } finally {
        this.asking = false;
      }
      if (asked !== String(this.query({ width }))) return this.load();  // the view is another by now
      this.data = data;
      const [svg, csv] = $$(".get a", this.figure), name = data.metric.replace(/[^\w.-]+/g, "_");
      svg.href = "/api/curve.svg?" + this.query({ log: this.log() ? 1 : "" });
      csv.href = "/api/curve.csv?" + this.query();
      svg.download = name + ".svg";
      csv.download = name + ".csv";
      this.draw();
      relab.loaded && relab.loaded(this);
      if (this.owed) this.load();
    }

    log() { return this.data && this.data.log_y !== "no" && (relab.view.log === null ? this.data.log_y === "yes" : relab.view.log); }

    logx() { return relab.view.logx && !!this.data && !!this.data.span && this.data.span[1] > 0; }

    ends() {  // of the axis that is shown; a log axis begins at its first row above 0
      const span = this.data.span || [0, 1], view = relab.view, to = view.to ?? (span[1] > span[0] ? span[1] : span[0] + 1);
      if (span[0] === span[1] && span[0] > 0 && view.from == null && view.to == null) return [this.logx() ? to / 10 : 0, span[0] * 1.1];  // one row
      const from = view.from ?? span[0];
      if (!this.logx() || from > 0) return [from, to];
      const firsts = this.data.lines.map((line) => line.x.find((x) => x > 0)).filter((x) => x < to);
      return [firsts.length ? Math.min(...firsts) : to / 1000, to];
    }

    // ---- From lines and bands to what uPlot draws

    series() {
      const data = this.data, tables = [], series = [{}], bands = [], many = data.lines.length > 1;
      const banded = new Set(data.bands.map((band) => band.place));
      const rising = (x, ...columns) => {  // rows that have a place on the axis
        if (!this.logx() || !(x[0] <= 0)) return [x, ...columns];
        const kept = x.map((v, i) => i).filter((i) => x[i] > 0);
        return [x, ...columns].map((column) => kept.map((i) => column[i]));
      };
      const log = this.log(), value = (v) => (v === null || Math.abs(v) > 1e30 || (log && v <= 0) ? null : v);
      for (const line of data.lines) {
        const colour = tone(line.place), faint = banded.has(line.place) || line.smooth;
        const base = { group: line.group, run: line.run, called: line.called, dash: DASHES[Math.floor(line.place / 6) % 3], spanGaps: false, show: !this.isHidden(line) };
        tables.push(rising(line.x, line.y.map(value)));
        const single = line.x.length === 1;
        series.push({ ...base, kind: "raw", stroke: colour(faint ? 0.34 : many ? 0.85 : 1), width: faint ? 1 : 1.5, points: { show: single || line.exact && line.x.length < 60, size: single ? 7 : 4, fill: colour(faint ? 0.34 : 1) } });
        if (line.smooth) {
          tables.push(rising(line.x, line.smooth.map(value)));
          series.push({ ...base, kind: "smooth", stroke: colour(banded.has(line.place) ? 0.6 : 1), width: 1.8, points: { show: false } });
        }
      }
      for (const band of data.bands) {
        const colour = tone(band.place), show = !this.hidden.has("g:" + band.group), base = { group: band.group, show, points: { show: false }, band: true };
        const first = series.length;
        for (const column of [band.high, band.low, band.mean]) tables.push(rising(band.x, column.map(value)));
        series.push({ ...base, kind: "high", stroke: "transparent", width: 0 }, { ...base, kind: "low", stroke: "transparent", width: 0 }, { ...base, kind: "mean", stroke: colour(1), width: 2.4, dash: DASHES[Math.floor(band.place / 6) % 3] });
        bands.push({ series: [first, first + 1], fill: colour(0.17) });
      }
      return { rows: tables.length ? uPlot.join(tables) : [[]], series, bands };
    }

    isHidden(line) { return this.hidden.has("g:" + line.group) || this.hidden.has("r:" + line.run); }

    draw() {
      const data = this.data, plot = $(".plot", this.figure);
      this.plot && this.plot.destroy();
      this.plot = null;
      plot.textContent = "";
      if (!data.lines.some((line) => line.y.some((v) => v !== null))) {
        plot.innerHTML = '<p class="none"></p>';
        plot.firstChild.textContent = data.lines.length ? "no finite value to draw" : "not logged by these runs";
        return;
      }
      const { rows, series, bands } = this.series(), log = this.log(), ink = css("--dim"), rule = css("--rule"), time = relab.view.x === "time";
      const logx = this.logx();
      const lead = this.figure.classList.contains("lead");
      const options = {
        width: plot.clientWidth, height: this.size(), series, bands, legend: { show: false }, padding: this.room(plot.clientWidth, lead),
        cursor: { drag: { x: true, y: false, setScale: false }, focus: { prox: 24 }, sync: { key: "relab" }, points: { size: 6 } },
        focus: { alpha: 1 },
        scales: { x: { time: false, distr: logx ? 3 : 1, range: () => this.ends() }, y: { distr: log ? 3 : 1, range: (u, low, high) => (log ? this.decades(low, high) : this.reach(low, high)) } },
        axes: [
          { stroke: ink, grid: { stroke: rule, width: 1 }, ticks: { stroke: rule }, splits: logx ? (u) => this.powers(u.scales.x.min, u.scales.x.max) : undefined, filter: logx ? (u, splits) => splits : undefined, values: (u, splits) => (time ? splits.map((v) => (v === null ? "" : clock(v))) : ticks(splits)), label: lead ? data.axis : undefined, labelSize: 20, labelGap: 0, size: 28, font: "11px system-ui", labelFont: "12px system-ui" },
          { stroke: ink, grid: { stroke: rule, width: 1 }, ticks: { stroke: rule }, splits: log ? (u) => this.powers(u.scales.y.min, u.scales.y.max) : undefined, filter: log ? (u, splits) => splits : undefined, values: (u, splits) => ticks(splits), size: (u, texts) => this.beside(texts), font: "11px system-ui" },
        ],
        hooks: { draw: [(u) => this.over(u)], setSelect: [(u) => this.zoom(u)], setCursor: [(u) => this.tip(u)], ready: [(u) => this.wheel(u)] },
      };
      this.plot = new uPlot(options, rows, plot);
      this.caption();
      this.keys();
    }

    beside(texts) {  // as wide as the longest number that stands there, and no narrower than the charts around it
      pen.font = "11px system-ui";
      return Math.max(52, ...(texts || []).map((text) => Math.ceil(pen.measureText(text).width) + 18));
    }

    reach(low, high) {
      if (low === null || low === undefined) return [0, 1];
      const size = Math.max(Math.abs(low), Math.abs(high)), flat = high - low <= 1e-9 * size;  // a constant, but for rounding
      const pad = flat ? size * 0.06 || 1 : (high - low) * 0.06;
      return [low - pad, high + pad];
    }

    decades(low, high) {
      if (!(high > 0)) return [0.1, 1];
      const foot = Math.max(low, high * 1e-9);  // what lies further down would leave no room for the rest
      return [foot / 1.5, high * 1.5 > foot ? high * 1.5 : foot * 2];
    }

    powers(low, high) {
      const first = Math.ceil(Math.log10(low)), last = Math.floor(Math.log10(high)), step = Math.max(1, Math.ceil((last - first + 1) / 5)), marks = [];
      for (let k = first; k <= last; k += step) for (const by of last - first < 2 ? [1, 2, 5] : [1]) marks.push(by * 10 ** k);
      return marks.filter((v) => v >= low && v <= high);
    }

    caption() {
      const data = this.data, rows = data.lines.reduce((n, line) => n + line.rows, 0), lost = data.lines.reduce((n, line) => n + line.lost, 0);
      const exact = data.lines.every((line) => line.exact), unit = data.unit && data.unit !== "-" ? data.unit : "";
      const lead = this.figure.classList.contains("lead"), many = `${rows.toLocaleString("en")} rows`, line = $("figcaption .dim", this.figure);
      const whole = exact ? "every row" : `lowest and highest of ${many} a column; zoom in for each`, how = lead ? whole : exact ? "" : many;
      line.textContent = [unit, how, this.log() ? "log" : "", lost ? `${lost} not finite` : ""].filter(Boolean).join(" · ");
      line.title = whole;
    }

    keys() {
      const box = $(".keys", this.figure), data = this.data;
      box.textContent = "";
      if (!this.figure.classList.contains("lead")) return;
      const groups = new Map();
      for (const line of data.lines) groups.set(line.group, [...(groups.get(line.group) || []), line]);
      const several = groups.size > 1, said = new Set();
      const bands = [...groups.keys()].map((group) => data.bands.find((each) => each.group === group)?.label);
      const same = several && bands[0] && bands.every((label) => label === bands[0]);  // then it is said once
      for (const [group, lines] of groups) {
        const band = data.bands.find((each) => each.group === group);
        const text = band ? `thick: ${band.label}; thin: each seed` : lines.length > 1 ? `${lines.length} runs, no band under 5 seeds` : lines[0].run;
        said.add(lines.length > 1 ? text : "");
        this.key(box, lines[0].place, !several ? text : lines.length > 1 && !same ? `${group}: ${text}` : group, "g:" + group);
        if (!several && lines.length > 1) for (const line of lines) this.key(box, line.place, line.called, "r:" + line.run);
      }
      if (same) box.append([...said].join(""));
      if (data.lines.some((line) => line.smooth)) box.append("faint: the rows themselves; strong: smoothed");
    }

    key(box, place, text, id) {
      const button = document.createElement("button"), mark = document.createElement("span");
      button.type = "button";
      mark.className = `tone c${place % 6} d${Math.floor(place / 6) % 3}`;
      button.append(mark, text);
      button.title = "show or hide; no number changes";
      button.setAttribute("aria-pressed", String(!this.hidden.has(id)));
      button.onclick = () => relab.hide(id);
      box.append(button);
    }

    // ---- Levels, events, onsets

    over(u) {
      const { ctx, bbox } = u, scale = devicePixelRatio, data = this.data, dim = css("--dim");
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      ctx.font = `${11 * scale}px system-ui`;
      ctx.lineWidth = scale;
      const [low, high] = [u.scales.y.min, u.scales.y.max], names = [];
      for (const level of [...data.levels].sort((a, b) => b.value - a.value)) {
        if (level.value < low || level.value > high) continue;
        const y = u.valToPos(level.value, "y", true);
        ctx.strokeStyle = dim;
        ctx.setLineDash([5 * scale, 4 * scale]);
        ctx.beginPath(); ctx.moveTo(bbox.left, y); ctx.lineTo(bbox.left + bbox.width, y); ctx.stroke();
        names.push({ y: Math.max(y, names.length ? names[names.length - 1].y + 12 * scale : 0), words: level.words });
      }
      ctx.setLineDash([]);
      if (relab.view.marks) this.marks(u, ctx, bbox, scale, dim);
      ctx.restore();
      ctx.save();
      ctx.font = `${11 * scale}px system-ui`;
      ctx.fillStyle = dim;
      ctx.textAlign = "left";
      for (const { y, words } of names) ctx.fillText(words, bbox.left + bbox.width + 5 * scale, y + 4 * scale);
      if (relab.view.marks) this.slugs(u, ctx, bbox, scale);
      ctx.restore();
    }

    room(width, lead) {  // names of levels stand to the right of the frame, those of findings over it: on no line
      pen.font = "11px system-ui";
      const data = this.data, view = relab.view, bend = this.logx() ? (v) => Math.log(Math.max(v, 1e-300)) : (v) => v, [from, to] = this.ends().map(bend);
      for (const level of data.levels) level.words = `${level.label} ${nice(level.value)}`;
      const right = Math.max(20, ...data.levels.map((level) => pen.measureText(level.words).width + 10)), across = Math.max(width - 60 - right, 1), ends = [];
      for (const finding of data.findings) {
        const x = (bend(finding.x) - from) / (to - from) * across, long = pen.measureText(finding.slug).width + 8;
        const start = x + long > across ? Math.max(x - long, 0) : x;
        const free = ends.findIndex((end) => end <= start);
        finding.row = x < 0 || x > across ? -1 : free < 0 ? ends.length : free;
        if (finding.row >= 0) ends[finding.row] = start + long;
      }
      return [lead && view.marks ? 10 + 13 * Math.min(ends.length, ROWS) : 10, right, 0, 0];
    }

    slugs(u, ctx, bbox, scale) {
      if (!this.figure.classList.contains("lead")) return;
      for (const finding of this.data.findings) {
        if (!(finding.row >= 0 && finding.row < ROWS) || finding.x < u.scales.x.min || finding.x > u.scales.x.max) continue;
        const x = u.valToPos(finding.x, "x", true), right = x + ctx.measureText(finding.slug).width > bbox.left + bbox.width;
        ctx.fillStyle = alarm(finding);
        ctx.textAlign = right ? "right" : "left";
        ctx.fillText(finding.slug, x + (right ? 0 : 2) * scale, bbox.top - (4 + 13 * finding.row) * scale);
      }
    }

    text(ctx, words, x, y) {
      ctx.save();
      ctx.setLineDash([]);
      ctx.lineWidth = 4 * devicePixelRatio;
      ctx.strokeStyle = css("--paper");
      ctx.lineJoin = "round";
      ctx.strokeText(words, x, y);
      ctx.fillText(words, x, y);
      ctx.restore();
    }

    marks(u, ctx, bbox, scale, dim) {
      const foot = bbox.top + bbox.height, lead = this.figure.classList.contains("lead"), last = {};
      for (const mark of this.data.marks) {
        if (mark.x < u.scales.x.min || mark.x > u.scales.x.max) continue;
        const x = u.valToPos(mark.x, "x", true), tall = !["checkpoint", "best"].includes(mark.kind);
        if (Math.abs(x - (last[mark.kind] ?? -99)) < (tall ? 3 : 8) * scale) continue;  // so many that they would be a bar
        last[mark.kind] = x;
        ctx.strokeStyle = dim;
        ctx.globalAlpha = tall ? 0.55 : 0.3;
        ctx.beginPath(); ctx.moveTo(x, tall ? bbox.top : foot - 6 * scale); ctx.lineTo(x, foot); ctx.stroke();
        ctx.globalAlpha = 1;
        if (tall && lead) { ctx.fillStyle = dim; ctx.textAlign = "left"; this.text(ctx, mark.text.slice(0, 24), x + 3 * scale, foot - 6 * scale); }
      }
      for (const finding of this.data.findings) {
        if (finding.x < u.scales.x.min || finding.x > u.scales.x.max) continue;
        const x = u.valToPos(finding.x, "x", true);
        ctx.strokeStyle = alarm(finding);
        ctx.setLineDash([2 * scale, 3 * scale]);
        ctx.lineWidth = 1.5 * scale;
        ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, foot); ctx.stroke();
        ctx.setLineDash([]);
      }
    }

    // ---- Looking closer

    zoom(u) {
      if (u.select.width < 4) return;
      const from = u.posToVal(u.select.left, "x"), to = u.posToVal(u.select.left + u.select.width, "x");
      u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      relab.zoom(from, to);
    }

    wheel(u) {
      u.over.addEventListener("dblclick", () => relab.zoom(null, null));
      u.over.addEventListener("click", (event) => this.press(u, event));
      u.over.addEventListener("mouseleave", () => ($(".tip", this.figure).hidden = true));
      u.over.addEventListener("wheel", (event) => {
        if (!event.shiftKey && !event.ctrlKey) return;
        event.preventDefault();
        const by = (event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, at = u.posToVal(event.offsetX, "x");
        const [low, high] = [u.scales.x.min, u.scales.x.max], span = this.data.span;
        const from = Math.max(at - (at - low) * by, span[0]), to = Math.min(at + (high - at) * by, span[1]);
        relab.zoom(from <= span[0] && to >= span[1] ? null : from, from <= span[0] && to >= span[1] ? null : to);
      }, { passive: false });
    }

    press(u, event) {
      const near = this.data.findings.find((f) => Math.abs(u.valToPos(f.x, "x") - event.offsetX) < 6);
      if (near) relab.finding && relab.finding(near);
    }

    tip(u) {
      const box = $(".tip", this.figure), at = u.cursor.idx;
      if (at === null || at === undefined || u.cursor.left < 0 || !this.figure.matches(":hover")) { box.hidden = true; return; }
      box.textContent = "";
      const head = document.createElement("div");
      head.className = "dim";
      head.textContent = `${this.data.axis} ${relab.view.x === "time" ? clock(u.data[0][at]) : Math.round(u.data[0][at]).toLocaleString("en")}`;
      box.append(head);
      let shown = 0;
      u.series.forEach((series, i) => {
        if (i === 0 || series.show === false || !["raw", "mean"].includes(series.kind)) return;
        const value = this.near(u, i, at);
        if (value === null || shown++ > 11) return;
        const line = document.createElement("div"), dot = document.createElement("i");
        dot.style.background = typeof series.stroke === "function" ? series.stroke(u, i) : series.stroke;
        line.append(dot, `${series.band ? series.group + " mean" : u.series.length > 2 ? series.called : series.group}: ${nice(value)}`);
        box.append(line);
      });
      for (const finding of this.data.findings) if (Math.abs(u.valToPos(finding.x, "x") - u.cursor.left) < 6) {
        const line = document.createElement("div");
        line.textContent = `${finding.severity}: ${finding.slug} (click)`;
        box.append(line);
      }
      box.hidden = false;
      const plot = $(".plot", this.figure), left = u.cursor.left + 66, wide = box.offsetWidth;
      box.style.left = (left + wide + 12 > plot.clientWidth ? left - wide - 24 : left) + "px";
      box.style.top = plot.offsetTop + 8 + "px";
    }

    near(u, i, at) {
      const column = u.data[i];
      for (let by = 0; by < 30; by++) for (const j of [at - by, at + by]) if (column[j] !== null && column[j] !== undefined) return column[j];
      return null;
    }

    fit() {
      const wide = $(".plot", this.figure).clientWidth;
      if (this.plot && wide && Math.abs(wide - this.plot.width) > 1) this.plot.setSize({ width: wide, height: this.size() });
    }

    png() {
      if (!this.plot) return;
      const from = this.plot.ctx.canvas, to = document.createElement("canvas"), ctx = to.getContext("2d");
      [to.width, to.height] = [from.width, from.height + 30 * devicePixelRatio];
      ctx.fillStyle = css("--paper");
      ctx.fillRect(0, 0, to.width, to.height);
      ctx.fillStyle = css("--ink");
      ctx.font = `${13 * devicePixelRatio}px system-ui`;
      ctx.fillText(this.figure.dataset.title, 8 * devicePixelRatio, 19 * devicePixelRatio);
      ctx.drawImage(from, 0, 30 * devicePixelRatio);
      to.toBlob((blob) => {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(blob);
        link.download = this.data.metric.replace(/[^\w.-]+/g, "_") + ".png";
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 5000);
      });
    }
  }

  // ---- What all charts of a page share

  const params = relab.params(), float = (name) => (params.get(name) === null ? null : Number(params.get(name)));
  relab.view = { x: params.get("x") || "steps", from: float("from"), to: float("to"), smooth: float("smooth") || 0, log: params.get("log") === null ? null : params.get("log") === "1", logx: params.get("logx") === "1", marks: params.get("marks") !== "0" };
  relab.charts = [];
  relab.chart = (figure) => { const made = new Chart(figure); relab.charts.push(made); return made; };
  relab.again = () => relab.charts.forEach((chart) => (chart.visible ? chart.load() : (chart.stale = true)));
  relab.zoom = (from, to) => {
    [from, to] = [from, to].map((end) => (end === null ? null : +end.toPrecision(8)));  // as the address has it
    Object.assign(relab.view, { from, to });
    relab.set({ from, to });
    const reset = $("#reset");
    if (reset) reset.hidden = from === null;
    for (const chart of relab.charts) if (chart.plot) chart.plot.redraw(false, true), chart.plot.setScale("x", (([min, max]) => ({ min, max }))(chart.ends()));
    clearTimeout(relab.closer);
    relab.closer = setTimeout(relab.again, 90);  // what is there is stretched at once; the rows of the stretch follow
  };
  relab.hide = (id) => {
    for (const chart of relab.charts) {
      chart.hidden.has(id) ? chart.hidden.delete(id) : chart.hidden.add(id);
      if (chart.data) chart.draw();
    }
    relab.set({ hide: [...relab.charts[0].hidden] });
  };
  relab.finding = (finding) => {  // its card: evidence, reference, what refutes it, what to try
    const card = $("#f" + finding.number), folded = card && card.closest(".rest");
    if (!card) return;
    $$(".finding.at").forEach((each) => each.classList.remove("at"));
    if (folded) folded.open = true;
    card.classList.add("at");
    card.open = true;
    card.scrollIntoView({ block: "center", behavior: "smooth" });
    $("summary", card).focus({ preventScroll: true });
  };
  relab.cards = async () => {  // findings that fired since; cards that are open stay so
    const box = $("#cards"), answer = await fetch("/findings?" + relab.source);
    if (!box || !answer.ok) return;
    const open = new Set($$("details[open] > summary > b", box).map((slug) => slug.textContent));
    box.innerHTML = new DOMParser().parseFromString(await answer.text(), "text/html").body.innerHTML;
    for (const card of $$("details.finding", box)) card.open = open.has($("b", card).textContent);
  };
  const logx = $("#logx");
  if (logx) {
    logx.checked = relab.view.logx;
    logx.onchange = () => { relab.view.logx = logx.checked; relab.set({ logx: logx.checked ? 1 : null }); relab.again(); };
  }
  relab.keys["0"] = () => relab.zoom(null, null);
  addEventListener("relab-theme", () => relab.charts.forEach((chart) => chart.data && chart.draw()));
})();
