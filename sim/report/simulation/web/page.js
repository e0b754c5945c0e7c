"use strict";
// Draws the charts from the JSON contract in the element "data". Every chart
// has a place in the page, or is left out; it follows the width of its place
// and the colour scheme.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const height = 290;
  const places = []; // functions that draw a chart again

  const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 });
  const precise = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });
  const value = (unit) => (u, v) => (v == null ? "–" : precise.format(v) + (unit ? " " + unit : ""));
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const faint = (name, percent) => `color-mix(in srgb, ${colour(name)} ${percent}%, transparent)`;

  // few leaves the labels 1, 2 and 5 of every decade of a logarithmic axis, or
  // only 1 when there are many decades.
  const few = (u, splits) => {
    const shown = splits.filter((v) => v > 0);
    const wide = shown.length && shown[shown.length - 1] / shown[0] > 300;
    return splits.map((v) => {
      const lead = Math.round(v / 10 ** Math.floor(Math.log10(v) + 1e-9));
      return lead === 1 || (!wide && (lead === 2 || lead === 5)) ? v : null;
    });
  };
  // A logarithmic axis begins and ends at one digit, from which its labels count.
  const logarithmic = {
    distr: 3,
    range: (u, low, high) => {
      if (!(low > 0)) return [1, 10];
      const begin = 10 ** Math.floor(Math.log10(low)), end = 10 ** Math.floor(Math.log10(high));
      const ends = [Math.floor(low / begin) * begin, Math.ceil(high / end) * end];
      return ends[0] < ends[1] ? ends : [ends[0], 2 * ends[0]];
    },
  };

  // axis returns the options of an axis in the colours of the scheme.
  const axis = (label, more) => ({
    stroke: colour("soft"), grid: { stroke: faint("line", 70), width: 1 }, ticks: { stroke: colour("line"), width: 1 }, label, labelSize: 18,
    font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
    values: (u, splits) => splits.map((v) => (v == null ? "" : compact.format(v))), ...more,
  });

  // horizontal is an axis below a chart, which needs less room.
  const horizontal = (label, more) => axis(label, { size: 30, ...more });

  // place draws a chart where it belongs. make returns options and data.
  const place = (id, make) => {
    const at = document.getElementById(id);
    if (!at) return;
    let chart = null;
    const draw = () => {
      if (chart) chart.destroy();
      const made = make();
      chart = made && new uPlot({ width: at.clientWidth, height, ...made.options }, made.data, at);
    };
    places.push(draw);
    draw();
    new ResizeObserver(() => {
      if (chart && at.clientWidth && at.clientWidth !== chart.width) chart.setSize({ width: at.clientWidth, height });
    }).observe(at);
    return draw;
  };

  const line = (label, name, unit, more) => ({
    label, stroke: colour(name), width: 2, value: value(unit), spanGaps: true, points: { show: false }, ...more,
  });
  const dots = (label, name, unit) => ({
    label, stroke: colour(name), value: value(unit), paths: () => null, points: { show: true, size: 10, fill: colour(name), stroke: colour(name) },
  });

  // vertical draws lines across the plot at values of x, with areas behind.
  const vertical = (marks) => ({
    hooks: {
      drawAxes: [(u) => {
        const { ctx, bbox } = u;
        ctx.save();
        ctx.beginPath();
        ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
        ctx.clip();
        const ends = []; // where the texts of a line end, so that none is written over
        for (const m of marks()) {
          const x = u.valToPos(m.at, "x", true);
          if (m.until > m.at) {
            ctx.fillStyle = faint(m.colour, 12);
            ctx.fillRect(x, bbox.top, u.valToPos(m.until, "x", true) - x, bbox.height);
          }
          ctx.strokeStyle = colour(m.colour);
          ctx.lineWidth = devicePixelRatio * 1.5;
          ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
          ctx.beginPath();
          ctx.moveTo(x, bbox.top);
          ctx.lineTo(x, bbox.top + bbox.height);
          ctx.stroke();
          if (m.text) {
            ctx.fillStyle = colour(m.colour);
            ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
            const pad = 5 * devicePixelRatio, wide = ctx.measureText(m.text).width + 2 * pad;
            const begin = x + wide > bbox.left + bbox.width ? x - wide : x;
            let row = 0;
            while (ends[row] > begin) row++;
            ends[row] = begin + wide;
            ctx.textAlign = "left";
            ctx.textBaseline = "top";
            ctx.fillText(m.text, begin + pad, bbox.top + (4 + 15 * row) * devicePixelRatio);
          }
        }
        ctx.restore();
      }],
    },
  });

  // cumulative returns [x, y]: the share in per cent within x ms, from the
  // histogram when there is one, else from the quantiles.
  const cumulative = (metric) => {
    const histogram = data.histograms.find((h) => h.metric === metric);
    if (histogram && histogram.bins.length) {
      const total = histogram.bins.reduce((sum, b) => sum + b.count, 0);
      let seen = 0;
      const x = [histogram.bins[0].low_ms], y = [0];
      for (const b of histogram.bins) {
        seen += b.count;
        x.push(b.high_ms);
        y.push(total ? (100 * seen) / total : 0);
      }
      return [x, y];
    }
    const s = data[metric + "_ms"];
    const points = [[s.min, 0], [s.p50, 50], [s.p90, 90], [s.p95, 95], [s.p99, 99], [s.p999, 99.9], [s.max, 100]].filter((p) => p[0] != null);
    return [points.map((p) => p[0]), points.map((p) => p[1])];
  };

  // positive moves what a logarithmic axis cannot show to the least that it can.
  const positive = (tables) => {
    let least = Infinity;
    for (const [x] of tables) for (const v of x) if (v > 0) least = Math.min(least, v);
    return tables.map(([x, y]) => {
      const points = x.map((v, i) => [Math.max(v, least), y[i]]);
      return [points.map((p) => p[0]), points.map((p) => p[1])];
    });
  };
  // distinct keeps the last of the points with equal x, as an axis wants it.
  const distinct = ([x, y]) => {
    const keep = x.map((v, i) => i + 1 === x.length || x[i + 1] > v);
    return [x.filter((_, i) => keep[i]), y.filter((_, i) => keep[i])];
  };

  const cdf = (metrics) => () => {
    const tables = positive(metrics.map((m) => cumulative(m.key))).map(distinct);
    if (!tables.some(([x]) => x.length > 1)) return null;
    return {
      options: {
        scales: { x: { time: false, ...logarithmic }, y: { range: [0, 100] } },
        axes: [horizontal("ms", { filter: few }), axis("%", {})],
        series: [{ label: "within", value: value("ms") }, ...metrics.map((m) => line(m.name, m.colour, "%"))],
      },
      data: uPlot.join(tables),
    };
  };
  place("cdf-requests", cdf([
    { key: "ttft", name: "TTFT", colour: "blue" }, { key: "queue", name: "queue", colour: "orange" }, { key: "e2e", name: "E2E", colour: "green" },
  ]));
  place("cdf-tokens", cdf([{ key: "tpot", name: "TPOT", colour: "blue" }, { key: "itl", name: "ITL", colour: "purple" }]));

  // choose fills a select and draws again when it changes.
  const choose = (id, options, draw) => {
    const select = document.getElementById(id);
    if (!select) return;
    for (const [key, text] of options) select.add(new Option(text, key));
    select.addEventListener("change", draw());
  };

  const names = { ttft: "TTFT", ttft_from_admit: "TTFT from admission", queue: "queue", tpot: "TPOT", itl: "ITL", e2e: "E2E" };
  choose("histogram-metric", data.histograms.map((h) => [h.metric, names[h.metric] || h.metric]), () =>
    place("histogram", () => {
      const histogram = data.histograms.find((h) => h.metric === document.getElementById("histogram-metric").value);
      if (!histogram || !histogram.bins.length) return null;
      const x = histogram.bins.map((b) => b.low_ms), y = histogram.bins.map((b) => b.count);
      x.push(histogram.bins[histogram.bins.length - 1].high_ms);
      y.push(0);
      return {
        options: {
          scales: { x: { time: false, ...logarithmic }, y: { range: (u, low, high) => [0, Math.max(1, high * 1.05)] } },
          axes: [horizontal("ms", { filter: few }), axis("count", {})],
          series: [
            { label: "from", value: value("ms") },
            line("count", "blue", "", { paths: uPlot.paths.stepped({ align: 1 }), fill: faint("blue", 25) }),
          ],
        },
        data: distinct(positive([[x, y]])[0]),
      };
    }));

  // The load sweep. Saturated rates are red.
  const sweep = (id, columns, more) => place(id, () => {
    const points = [...data.curve].sort((a, b) => a.rate_req_s - b.rate_req_s);
    const knee = data.knee_req_s;
    const first = columns[0];
    const shown = { points: { show: true, size: 6, fill: colour("card") } };
    return {
      options: {
        scales: { x: { time: false }, ...more.scales },
        axes: [horizontal("offered requests/s", {}), ...more.axes()],
        series: [
          { label: "offered", value: value("requests/s") },
          ...columns.map((c) => line(c.name, c.colour, c.unit, { ...shown, scale: c.scale || "y" })),
          { ...dots("saturated", "red", first.unit), scale: first.scale || "y" },
        ],
        plugins: [vertical(() => (knee > 0 ? [{ at: knee, colour: "purple", text: "knee" }] : []))],
      },
      data: [
        points.map((p) => p.rate_req_s), ...columns.map((c) => points.map(c.of)), points.map((p) => (p.saturated ? first.of(p) : null)),
      ],
    };
  });
  sweep("sweep-latency", [
    { name: "TTFT p99", colour: "orange", unit: "ms", of: (p) => p.ttft_ms.p99 }, { name: "TTFT p50", colour: "blue", unit: "ms", of: (p) => p.ttft_ms.p50 },
    { name: "TPOT p99", colour: "green", unit: "ms", of: (p) => p.tpot_ms.p99 }, { name: "E2E p50", colour: "soft", unit: "ms", of: (p) => p.e2e_ms.p50 },
  ], { scales: { y: logarithmic }, axes: () => [axis("ms", { filter: few })] });
  sweep("sweep-throughput", [
    { name: "output", colour: "blue", unit: "tok/s", of: (p) => p.output_tok_s },
    { name: "achieved", colour: "green", unit: "requests/s", scale: "rate", of: (p) => p.achieved_req_s },
    { name: "goodput", colour: "orange", unit: "requests/s", scale: "rate", of: (p) => p.goodput_req_s },
  ], {
    scales: { y: { range: fromZero }, rate: { range: fromZero } },
    axes: () => [axis("tok/s", {}), axis("requests/s", { side: 1, scale: "rate", grid: { show: false } })],
  });
  function fromZero(u, low, high) { return [0, high > 0 ? high * 1.05 : 1]; }

  // The course of time; the cursors of its charts move together.
  const events = () => [
    ...data.faults.map((f) => ({ at: f.at_s, until: f.at_s + (f.duration_s || 0), colour: "red", text: f.kind })),
    ...data.scaling.map((s) => ({ at: s.at_s, colour: "purple", text: `${s.from}→${s.to}` })),
  ].sort((a, b) => a.at - b.at);
  const course = (id, columns, axes, scales) => place(id, () => ({
    options: {
      scales: { x: { time: false }, ...scales },
      axes: [horizontal("s", {}), ...axes()],
      series: [
        { label: "at", value: value("s") },
        ...columns.map((c) => line(c.name, c.colour, c.unit, { scale: c.scale || "y", fill: c.fill ? faint(c.colour, 15) : undefined })),
      ],
      cursor: { sync: { key: "course" } },
      plugins: [vertical(events)],
    },
    data: [data.timeline.map((s) => s.at_s), ...columns.map((c) => data.timeline.map(c.of))],
  }));
  course("time-requests", [
    { name: "running", colour: "blue", fill: true, of: (s) => s.running }, { name: "waiting", colour: "orange", fill: true, of: (s) => s.waiting },
  ], () => [axis("requests", {})], { y: { range: fromZero } });
  course("time-cache", [
    { name: "KV in use", colour: "green", unit: "%", fill: true, of: (s) => (s.kv_used == null ? null : 100 * s.kv_used) },
    { name: "instances", colour: "purple", scale: "count", of: (s) => s.instances },
  ], () => [axis("%", {}), axis("instances", { side: 1, scale: "count", grid: { show: false }, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] })],
  { y: { range: (u, low, high) => [0, Math.max(100, high)] }, count: { range: fromZero } });
  course("time-rates", [
    { name: "arrivals", colour: "orange", unit: "/s", of: (s) => s.arrival_req_s }, { name: "completed", colour: "blue", unit: "/s", of: (s) => s.completed_req_s },
  ], () => [axis("requests/s", {})], { y: { range: fromZero } });
  course("time-output", [
    { name: "output", colour: "blue", unit: "tok/s", of: (s) => s.output_tok_s }, { name: "TTFT", colour: "orange", unit: "ms", scale: "ms", of: (s) => s.ttft_ms },
  ], () => [axis("tok/s", {}), axis("ms", { side: 1, scale: "ms", grid: { show: false } })], { y: { range: fromZero }, ms: { range: fromZero } });

  // One bar per instance, a colour per role.
  const figures = {
    "TTFT p50, ms": (i) => i.ttft_ms.p50, "TTFT p99, ms": (i) => i.ttft_ms.p99, "TPOT p50, ms": (i) => i.tpot_ms.p50, "TPOT p99, ms": (i) => i.tpot_ms.p99,
    "E2E p50, ms": (i) => i.e2e_ms.p50, "output tok/s": (i) => i.output_tok_s, "completed requests": (i) => i.requests.completed,
    "utilization, %": (i) => share(i.utilization), "block hits, %": (i) => share(i.cache.block_hit_rate), "KV peak, %": (i) => share(i.batch.kv_utilization),
    "preemptions": (i) => i.batch.preemptions,
  };
  function share(v) { return v == null ? null : 100 * v; }
  const roles = [...new Set(data.instances.map((i) => i.role))];
  const palette = ["blue", "orange", "green", "purple"];
  choose("instance-metric", Object.keys(figures).map((k) => [k, k]), () =>
    place("instances", () => {
      const name = document.getElementById("instance-metric").value;
      const bars = uPlot.paths.bars({ size: [0.7, 48], radius: 0.1 });
      const n = data.instances.length;
      return {
        options: {
          scales: { x: { time: false, range: [-0.6, n - 0.4] }, y: { range: fromZero } },
          axes: [
            horizontal("instance", { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], grid: { show: false },
              values: (u, splits) => splits.map((v) => (data.instances[v] ? data.instances[v].index : "")) }),
            axis(name, {}),
          ],
          series: [
            { label: "instance", value: (u, v) => (v == null || !data.instances[v] ? "–" : `${data.instances[v].index} ${data.instances[v].name}`) },
            ...roles.map((role, k) => line(role || "all", palette[k % palette.length], "", { paths: bars, fill: faint(palette[k % palette.length], 60), width: 1 })),
          ],
        },
        data: [
          data.instances.map((_, i) => i), ...roles.map((role) => data.instances.map((i) => (i.role === role ? figures[name](i) : null))),
        ],
      };
    }));

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => places.forEach((draw) => draw()));
})();
