"""The style and the script of the report's query explorer. The script sorts, filters and shows; it scores nothing."""

STYLE = """
h3{font-size:16px;margin:26px 0 6px}.figure{display:block;max-width:100%;height:auto;margin:10px 0}
.scroll.tall{max-height:460px;overflow:auto}.scroll.tall table{width:auto;min-width:60%}
.scroll.tall td,.scroll.tall th{padding:4px 12px;white-space:nowrap}
.explorer{border:1px solid var(--edge);border-radius:6px;padding:10px 12px;margin:12px 0}
.explorer label{display:inline-flex;gap:6px;align-items:center}.explorer .filter{gap:8px 14px;margin:4px 0 8px}
.explorer button{font:inherit;color:inherit;background:var(--card);border:1px solid var(--edge);border-radius:6px;
padding:4px 10px;cursor:pointer}
.explorer :focus-visible{outline:2px solid var(--accent);outline-offset:1px}
.rows{height:440px;overflow:auto;border:1px solid var(--edge);border-radius:6px;position:relative}
.row{position:absolute;left:0;right:0;min-width:max-content;display:grid;grid-template-columns:150px auto 96px;
gap:0 12px;align-items:center;
padding:4px 10px;border-bottom:1px solid var(--edge);cursor:pointer;background:var(--page)}
.row:hover{background:var(--card)}.row.active{background:var(--card);box-shadow:inset 3px 0 0 var(--accent)}
.row .id{overflow:hidden;text-overflow:ellipsis;white-space:nowrap;font-weight:600}
.row .id small{display:block;font-weight:400;overflow:hidden;text-overflow:ellipsis}
.line{display:grid;grid-template-columns:130px auto 76px;gap:0 10px;align-items:center;height:22px;justify-content:start}
.line>span:first-child{overflow:hidden;text-overflow:ellipsis;white-space:nowrap;color:var(--muted);font-size:13px}
.line .value,.row .change{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.change.won{color:var(--accent);font-weight:600}.change.lost{color:var(--bad);font-weight:600}
.strip{display:flex;gap:1px;min-width:calc(var(--cells)*12px + 3px)}
.strip i,.legend i{display:inline-block;flex:none;width:11px;height:16px;
font:10px/16px ui-monospace,SFMono-Regular,Consolas,monospace;
text-align:center;color:var(--ink)}
.strip .beyond{display:flex;gap:1px;opacity:.35;margin-left:3px}
i.useful{box-shadow:inset 0 -3px 0 var(--ink)}i.mid{color:#0d1117}i.high{color:var(--page)}
i.out{background:repeating-linear-gradient(45deg,var(--muted) 0 2px,transparent 2px 5px)}
.legend{display:flex;gap:4px 14px;flex-wrap:wrap;align-items:center;font-size:13px;color:var(--muted);margin:6px 0}
.legend span{display:inline-flex;gap:5px;align-items:center}
.detail{margin-top:10px}
.detail h4{margin:6px 0;font-size:15px}
.detail .sides{display:flex;gap:12px 28px;flex-wrap:wrap;align-items:flex-start}
.detail .side{min-width:min(100%,330px);max-width:100%}
.detail .scroll.tall{max-height:300px}
.detail .tall td,.detail .tall th{padding:1px 8px;text-align:right;font-size:13px}
.detail .scroll.tall table{min-width:0}
.detail ul{font-size:14px}
LEVELS@media(max-width:700px){.row{grid-template-columns:90px auto 80px}.line{grid-template-columns:80px auto 64px}}
"""
# The shades of grades in ten steps from 0 to the highest grade; mixed once for the page, not for each of its thousands of cells.
STYLE = STYLE.replace("LEVELS", ":root{" + "".join(
    f"--shade{level}:color-mix(in srgb,var(--accent) {6 + 94 * level // 10}%,var(--card));" for level in range(11))
    + "}\n" + "".join(f".level{level}{{background:var(--shade{level})}}" for level in range(11)) + "\n")

SCRIPT = r"""
"use strict";
const make = (name, className, text) => {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};

// As Python prints it: an exact tie goes to the even digit, where toFixed would go up.
const fixed = (value, digits) => {
  const scaled = Math.abs(value) * 10 ** digits, down = Math.floor(scaled);
  const tie = scaled - down === 0.5 && Number.isInteger(value * 2 ** 20);
  return tie ? (Math.sign(value) * (down + down % 2) / 10 ** digits).toFixed(digits) : value.toFixed(digits);
};
const show = (metric, value, sign = "") => {
  if (value === null) return "\u2013";
  const text = metric.percent ? fixed(100 * value, 2) + (sign ? "" : "%") : fixed(value, 4);
  return sign && value >= 0 ? sign + text : text;
};

class Explorer {
  constructor(root, data) {
    Object.assign(this, {root, data, order: [], active: 0, opened: null});
    this.count = data.ids.length;
    this.height = data.models.length * 22 + 9;
    this.cutoffs = data.cutoffs.map(String);
    root.style.setProperty("--cells", data.shown);
    this.build();
    this.arrange();
  }

  choice(title, options) {
    const label = make("label", "", title + " "), select = make("select");
    options.forEach(([value, text]) => select.append(new Option(text, value)));
    select.addEventListener("input", () => this.arrange());
    label.append(select);
    this.controls.append(label);
    return select;
  }

  build() {
    const {data} = this, all = ["", "all"];
    this.controls = make("div", "filter");
    this.metric = this.choice("Metric", data.metrics.map((metric, at) => [at, metric.title]));
    this.metric.value = data.metrics.findIndex(metric => metric.name === "ndcg");
    this.cutoff = this.choice("at", this.cutoffs.map(k => [k, k]));
    this.cutoff.value = this.cutoffs.includes("10") ? "10" : this.cutoffs.at(-1);
    this.pair = data.pairs.length
      ? this.choice("Compare", data.pairs.map(([base, other], at) => [at, `${data.models[other]} \u2212 ${data.models[base]}`]))
      : null;
    this.sort = this.choice("Sort by", [["file", "order in the record"], ["id", "id"],
      ...(this.pair ? [["change", "difference"]] : []), ...data.models.map((model, at) => [`m${at}`, model])]);
    this.down = make("button", "", "\u2191 ascending");
    this.down.type = "button";
    this.down.addEventListener("click", () => { this.descending = !this.descending; this.arrange(); });
    this.controls.append(this.down);
    this.type = data.types ? this.choice("Type", [all, ...[...new Set(data.types)].sort().map(type => [type, type])]) : null;
    this.eligible = this.choice("Eligible", [all, ["yes", "eligible"], ["no", "not eligible"]]);
    this.answerable = this.choice("Answerable", [all, ["yes", "answerable"], ["no", "not answerable"]]);
    this.outcome = this.pair ? this.choice("Outcome", [all, ["won", "won"], ["tied", "tied"], ["lost", "lost"]]) : null;
    const label = make("label", "", "Id ");
    this.search = make("input");
    this.search.type = "search";
    this.search.addEventListener("input", () => this.arrange());
    label.append(this.search);
    this.shown = make("output", "muted");
    this.controls.append(label, this.shown);
    this.list = make("div", "rows");
    this.list.tabIndex = 0;
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", `Queries of ${data.title}: arrow keys move, Enter shows the arithmetic`);
    this.space = make("div");
    this.space.setAttribute("role", "presentation");
    this.list.append(this.space);
    this.list.addEventListener("scroll", () => this.draw());
    this.list.addEventListener("keydown", event => this.key(event));
    this.detail = make("div", "detail");
    this.detail.setAttribute("aria-live", "polite");
    this.root.replaceChildren(this.controls, this.legend(), this.list, this.detail);
    new ResizeObserver(() => this.draw()).observe(this.list);
  }

  legend() {
    const {data} = this, legend = make("div", "legend");
    const entry = (cell, text) => {
      const item = make("span");
      item.innerHTML = cell;
      item.append(text);
      legend.append(item);
    };
    const grades = data.max <= 10 ? [...Array(data.max + 1).keys()] : [0, data.useful, data.max];
    grades.forEach(grade => entry(this.cell(grade), `grade ${grade}${grade >= data.useful ? ", useful" : ""}`));
    entry(this.cell(-3), "excluded");
    legend.append(make("span", "", "faint: beyond the cutoff"));
    return legend;
  }

  cell(grade) {
    if (grade < 0) return '<i class="out"></i>';
    const share = grade / this.data.max, useful = grade >= this.data.useful ? "useful " : "";
    const name = useful + (share > 0.8 ? "high" : share > 0.5 ? "mid" : "");
    return `<i class="level${Math.round(10 * share)} ${name}">${grade < 10 ? grade : ""}</i>`;
  }

  // A ranking is text, a character a position: the grade is its code above that of "0", and "-" is an excluded position.
  strip(ranking) {
    const k = +this.cutoff.value, positions = [...ranking.slice(0, this.data.shown)];
    const cells = positions.map(position => this.cell(position.charCodeAt(0) - 48));
    return cells.slice(0, k).join("") + (cells.length > k ? `<span class="beyond">${cells.slice(k).join("")}</span>` : "");
  }

  get columns() { return this.data.values[this.cutoff.value][this.metric.value]; }

  change(query) {
    if (!this.pair) return null;
    const [base, other] = this.data.pairs[this.pair.value], columns = this.columns;
    const [old, now] = [columns[base][query], columns[other][query]];
    return old === null || now === null ? null : now - old;
  }

  wanted(query) {
    const {data} = this, want = (select, holds) => !select || !select.value || (select.value === "yes") === holds;
    if (this.type && this.type.value && data.types[query] !== this.type.value) return false;
    if (!want(this.eligible, data.values[this.cutoff.value][0][0][query] !== null)) return false;
    if (!want(this.answerable, data.known[query] > 0)) return false;
    if (this.search.value && !data.ids[query].toLowerCase().includes(this.search.value.toLowerCase())) return false;
    if (!this.outcome || !this.outcome.value) return true;
    const change = this.change(query);
    return change !== null && {won: change > 0, tied: change === 0, lost: change < 0}[this.outcome.value];
  }

  arrange() {
    const {data} = this, by = this.sort.value, order = [];
    for (let query = 0; query < this.count; query++) if (this.wanted(query)) order.push(query);
    const down = this.descending ? -1 : 1;
    if (by === "id") {
      const collator = new Intl.Collator(undefined, {numeric: true});
      order.sort((a, b) => down * collator.compare(data.ids[a], data.ids[b]) || a - b);
    } else if (by === "file") {
      if (this.descending) order.reverse();
    } else {
      const columns = this.columns;
      const keys = data.ids.map((_, query) => by === "change" ? this.change(query) : columns[+by.slice(1)][query]);
      order.sort((a, b) => (keys[a] === null) - (keys[b] === null) || down * (keys[a] - keys[b]) || a - b);
    }
    Object.assign(this, {order, active: 0});
    this.down.textContent = this.descending ? "\u2193 descending" : "\u2191 ascending";
    this.shown.textContent = `${order.length.toLocaleString("en")} of ${this.count.toLocaleString("en")} queries`;
    this.space.style.height = `${order.length * this.height}px`;
    this.list.scrollTop = 0;
    this.rows = new Map();
    this.space.replaceChildren();
    this.draw();
    if (this.opened !== null) this.open(this.opened);
  }

  // Only the rows in sight are in the page; those that stay in sight are kept.
  draw() {
    const first = Math.max(0, Math.floor(this.list.scrollTop / this.height) - 3);
    const last = Math.min(this.order.length, first + Math.ceil(this.list.clientHeight / this.height) + 7);
    for (const [at, row] of this.rows) if (at < first || at >= last) { row.remove(); this.rows.delete(at); }
    for (let at = first; at < last; at++) {
      if (!this.rows.has(at)) {
        this.rows.set(at, this.row(at));
        this.space.append(this.rows.get(at));
      }
      this.rows.get(at).classList.toggle("active", at === this.active);
      this.rows.get(at).setAttribute("aria-selected", at === this.active);
    }
    this.list.setAttribute("aria-activedescendant", this.order.length ? `${this.data.key}-${this.active}` : "");
  }

  row(at) {
    const {data} = this, query = this.order[at], metric = data.metrics[this.metric.value], columns = this.columns;
    const row = make("div", "row"), name = make("span", "id", data.ids[query]), lines = make("span");
    row.id = `${data.key}-${at}`;
    row.style.top = `${at * this.height}px`;
    row.style.height = `${this.height}px`;
    name.title = data.ids[query];
    if (data.types) name.append(make("small", "", data.types[query]));
    const spoken = [`query ${data.ids[query]}`];
    data.models.forEach((model, at) => {
      const line = make("span", "line"), strip = make("span", "strip"), label = make("span", "", model);
      const text = show(metric, columns[at][query]);
      label.title = model;
      strip.innerHTML = this.strip(data.rankings[at][query]);
      line.append(label, strip, make("span", "value", text));
      lines.append(line);
      spoken.push(`${model} ${columns[at][query] === null ? "no value" : text}`);
    });
    const change = this.change(query), outcome = change > 0 ? "won" : change < 0 ? "lost" : "";
    row.append(name, lines, make("span", `change ${outcome}`, this.pair ? show(metric, change, "+") : ""));
    if (change !== null) spoken.push(`difference ${show(metric, change, "+")}`);
    row.setAttribute("role", "option");
    row.setAttribute("aria-label", spoken.join(", "));
    row.addEventListener("click", () => { this.active = at; this.draw(); this.open(query); });
    return row;
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.list.clientHeight / this.height) - 1), last = this.order.length - 1;
    const moves = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity};
    if (event.key in moves) this.active = Math.max(0, Math.min(last, this.active + moves[event.key]));
    else if (event.key === "Enter" || event.key === " ") { if (last >= 0) this.open(this.order[this.active]); }
    else return;
    event.preventDefault();
    const top = this.active * this.height, {scrollTop, clientHeight} = this.list;
    if (top < scrollTop) this.list.scrollTop = top;
    else if (top + this.height > scrollTop + clientHeight) this.list.scrollTop = top + this.height - clientHeight;
    this.draw();
  }

  open(query) {
    const {data} = this, k = this.cutoff.value;
    this.opened = query;
    const sides = make("div", "sides");
    data.models.forEach((_, model) => sides.append(this.side(query, model, k)));
    const type = data.types ? ` (${data.types[query]})` : "";
    const counts = data.counts[query], known = counts.map((count, grade) => [count, grade]).filter(([count]) => count > 0);
    const best = [];
    for (let grade = counts.length - 1; grade > 0; grade--) {
      for (let n = 0; n < counts[grade] && best.length < k; n++) best.push(grade);
    }
    const terms = best.map((grade, at) => `${data.gains[grade]}/log2(${at + 2})`);
    const held = known.map(([count, grade]) => `${count} of grade ${grade}`);
    const facts = make("ul");
    facts.append(
      make("li", "", `Reference: ${held.join(", ") || "no graded passage"}; `
        + `${data.known[query]} useful (grade ${data.useful} or more)`),
      make("li", "", `Ideal DCG = ${fixed(data.ideal[k][query], 6)} = ${terms.join(" + ") || "0"}, `
        + `from the ${best.length} best grades of the reference`));
    this.detail.replaceChildren(make("h4", "", `Query ${data.ids[query]}${type}, the first ${k} positions`), facts, sides);
  }

  side(query, model, k) {
    const {data} = this, side = make("div", "side"), table = make("table");
    const head = table.createTHead().insertRow(), body = table.createTBody();
    ["rank", "grade", "retained", "gain", "log2(retained + 1)", "gain / log2"].forEach(text => head.append(make("th", "", text)));
    const reasons = data.reasons[model][query] || {};
    let retained = 0, useful = 0;
    const ranking = [...data.rankings[model][query].slice(0, +k)];
    ranking.forEach((position, at) => {
      const grade = position.charCodeAt(0) - 48, row = body.insertRow();
      if (grade >= 0) retained += 1;
      if (grade >= data.useful) useful += 1;
      (grade < 0 ? [at + 1, `excluded (${reasons[at] || "no reason given"})`, "", "", "", ""]
        : [at + 1, grade, retained, data.gains[grade], data.discounts[retained - 1], data.terms[grade][retained - 1]])
        .forEach(text => { row.insertCell().textContent = text; });
    });
    const values = make("ul"), columns = data.values[k];
    values.append(make("li", "", `DCG = ${fixed(data.dcg[k][model][query], 6)}, the sum of the last column`),
      make("li", "", `${useful} useful of ${retained} retained`
        + (data.selected ? `; selected: ${data.selected[model][query]}` : "")));
    data.metrics.forEach((metric, at) => {
      const value = columns[at][model][query];
      const why = columns[0][model][query] === null
        ? "not counted: every position is excluded in some model" : "undefined: there is nothing to divide by";
      values.append(make("li", "", `${metric.title}@${k}${value === null ? `: ${why}` : ` = ${fixed(value, 6)}`}`));
    });
    const scroll = make("div", "scroll tall");
    scroll.tabIndex = 0;
    scroll.append(table);
    side.append(make("strong", "", data.models[model]), ranking.length ? scroll : make("p", "muted", "nothing ranked"), values);
    return side;
  }
}

// One explorer after the other, so that the page answers in between.
document.querySelectorAll(".explorer").forEach(root => setTimeout(() => {
  root.explorer = new Explorer(root, JSON.parse(document.getElementById(root.dataset.panel).textContent));
}));
"""
