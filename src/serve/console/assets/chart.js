// Charts: lines, stacked areas, sparklines. The lines are SVG that is stretched to its place; the
// texts are HTML, so that they keep their size. A second series is dashed or hatched: colour is
// never the only difference. Every chart can be read as a table.

import { get, url } from './api.js';
import { clock_time, h, length, muted, panel } from './dom.js';
import { column, table } from './table.js';

const width = 600;
const height = 160;

/// A value that is a little above the largest one, with one or two digits.
function ceiling(largest) {
  if (!(largest > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(largest));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15].find((step) => step * power >= largest * 1.001) * power;
}

/// The parts of a line between missing values: [[x, y], ...] for each.
function pieces(values, to_point) {
  const result = [];
  let piece = null;
  values.forEach((value, i) => {
    if (value == null) piece = null;
    else {
      if (!piece) result.push((piece = []));
      piece.push(to_point(value, i));
    }
  });
  return result;
}

const line_of = (points) =>
  points.map(([x, y], i) => `${i ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`).join('');

function line_path(values, most, tall = height) {
  const step = width / Math.max(1, values.length - 1);
  return pieces(values, (value, i) => [i * step, tall - (value / most) * (tall - 2) - 1])
    .map((points) => (points.length === 1 ? [...points, [points[0][0] + 2, points[0][1]]] : points))
    .map(line_of)
    .join('');
}

function area_path(lower, upper, most) {
  const step = width / Math.max(1, upper.length - 1);
  const y = (value) => height - (value / most) * (height - 2) - 1;
  return pieces(upper, (value, i) => [i * step, y(value), y(lower[i] ?? 0)])
    .map(
      (points) =>
        `${line_of(points)}${[...points]
          .reverse()
          .map(([x, , low]) => `L${x.toFixed(1)} ${low.toFixed(1)}`)
          .join('')}Z`
    )
    .join('');
}

/// A small line without axes. Its words are in the cell beside it.
export function sparkline(values) {
  const known = (values ?? []).filter((value) => value !== null);
  if (known.length < 2) return null;
  return h(
    'svg',
    {
      class: 'sparkline',
      viewBox: `0 0 ${width} 60`,
      preserveAspectRatio: 'none',
      'aria-hidden': 'true'
    },
    h('path', { d: line_path(values, ceiling(Math.max(...known)), 60), class: 'line' })
  );
}

/// Leaves out the time before the first value, but keeps 30 points. A 0 before it is not known to
/// be one: a rate needs two counts.
function without_empty_start({ at, series }) {
  const first = at.findIndex((_, i) => series.some(({ values }) => values[i]));
  const begin = Math.max(0, Math.min(first < 0 ? at.length : first, at.length - 30));
  return {
    at: at.slice(begin),
    series: series.map((each) => ({
      ...each,
      values: each.values.map((value, i) => (i < first ? null : value)).slice(begin)
    }))
  };
}

/// `chart`: title, at (times), series ([{name, values}]), stacked, format(value).
export function chart({ title, at, series, stacked = false, format }) {
  const known = series.some(({ values }) => values.some((value) => value !== null));
  const tops = stacked ? stack(series) : series.map(({ values }) => values);
  const end = ceiling(Math.max(0, ...tops.flat().filter((value) => value !== null)));
  return h(
    'figure',
    { class: 'chart', 'data-key': title },
    h(
      'figcaption',
      null,
      h('span', { class: 'chart-title' }, title),
      h(
        'span',
        null,
        `last ${length((at.length * (Date.parse(at[1]) - Date.parse(at[0]))) / 1000)}`
      ),
      h(
        'ul',
        { class: 'legend' },
        series.map(({ name, values }, i) =>
          h(
            'li',
            null,
            h('span', { class: `swatch s${i}`, 'aria-hidden': 'true' }),
            `${name} `,
            h('span', { class: 'value' }, format(last_known(values)))
          )
        )
      )
    ),
    known
      ? plot({ title, at, series, tops, stacked, format, end })
      : muted('No values yet.'),
    known && as_table({ title, at, series, format })
  );
}

const last_known = (values) =>
  values.findLast((value) => value != null) ?? null;

function stack(series) {
  const sums = [];
  series.forEach(({ values }, i) =>
    sums.push(
      values.map((value, k) =>
        value == null ? null : value + (i ? (sums[i - 1][k] ?? 0) : 0)
      )
    )
  );
  return sums;
}

/// An upper part that is 0 has no edge: it would be the one of the part below.
const edge = (tops, { values }) => tops.map((top, i) => (values[i] ? top : null));

function plot({ title, at, series, tops, stacked, format, end }) {
  const shapes = tops.map((values, i) => [
    stacked &&
      h('path', {
        class: `area s${i}`,
        d: area_path(i ? tops[i - 1] : [], values, end),
        fill: i % 2 ? 'url(#hatch)' : null
      }),
    h('path', {
      class: `line s${i}`,
      d: line_path(i && stacked ? edge(values, series[i]) : values, end)
    })
  ]);
  const cross = h('div', { class: 'crosshair', 'data-keep': '', hidden: true });
  const readout = h('p', { class: 'readout', role: 'status', 'data-keep': '' });
  const show = (host, index) => {
    const target = host.querySelector('.crosshair');
    const text = host.closest('figure').querySelector('.readout');
    target.hidden = index === null;
    if (index === null) {
      text.textContent = '';
      return;
    }
    target.dataset.index = index;
    target.style.left = `${(100 * index) / Math.max(1, at.length - 1)}%`;
    text.textContent = `${clock_time(at[index])}: ${series
      .map(({ name, values }) => `${name} ${format(values[index])}`)
      .join(', ')}`;
  };
  const host = h(
    'div',
    {
      class: 'plot',
      tabindex: '0',
      role: 'group',
      'aria-label': `Chart: ${title}. Arrow keys show single values.`,
      onpointermove: (event) => {
        const box = event.currentTarget.getBoundingClientRect();
        const part = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
        show(event.currentTarget, Math.round(part * (at.length - 1)));
      },
      onpointerleave: (event) => show(event.currentTarget, null),
      onblur: (event) => show(event.currentTarget, null),
      onkeydown: (event) => {
        const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -at.length, End: at.length };
        if (!(event.key in steps)) return;
        event.preventDefault();
        const mark = event.currentTarget.querySelector('.crosshair');
        const current = mark.hidden ? at.length - 1 : Number(mark.dataset.index) + steps[event.key];
        show(event.currentTarget, Math.min(at.length - 1, Math.max(0, current)));
      }
    },
    h(
      'svg',
      {
        viewBox: `0 0 ${width} ${height}`,
        preserveAspectRatio: 'none',
        'aria-hidden': 'true'
      },
      stacked &&
        h(
          'defs',
          null,
          h(
            'pattern',
            {
              id: 'hatch',
              width: 6,
              height: 6,
              patternUnits: 'userSpaceOnUse',
              patternTransform: 'rotate(45)'
            },
            h('rect', { width: 3, height: 6, class: 'hatch' })
          )
        ),
      [0.5, 1].map((part) =>
        h('line', {
          class: 'grid',
          x1: 0,
          x2: width,
          y1: height * (1 - part) + 1,
          y2: height * (1 - part) + 1
        })
      ),
      shapes
    ),
    cross
  );
  return [
    h(
      'div',
      { class: 'axes' },
      h(
        'div',
        { class: 'y-axis', 'aria-hidden': 'true' },
        [end, end / 2, 0].map((value) => h('span', null, format(value)))
      ),
      host,
      h(
        'div',
        { class: 'x-axis', 'aria-hidden': 'true' },
        [0, 0.5, 1].map((part) =>
          h('span', null, clock_time(at[Math.round(part * (at.length - 1))]))
        )
      )
    ),
    readout
  ];
}

/// At most 60 rows, the newest first.
function as_table({ title, at, series, format }) {
  const step = Math.ceil(at.length / 60);
  const rows = at.map((_, i) => i).filter((i) => (at.length - 1 - i) % step === 0);
  return h(
    'details',
    { class: 'as-table' },
    h('summary', null, 'As a table'),
    h(
      'div',
      { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `${title}, as a table` },
      table(
        { query: {} },
        title,
        [
          column('Time', (i) => clock_time(at[i])),
          ...series.map(({ name, values }) => column(name, (i) => format(values[i]), null, true))
        ],
        rows.reverse()
      )
    )
  );
}

/// The history of a page, since its first value.
export async function load_history(names, signal) {
  // A comma separates the names, and an address has a longest length.
  const series = names
    .filter((name) => !name.includes(',') && encodeURIComponent(name).length < 200)
    .join();
  return series && without_empty_start(await get(url`/v1/history`, signal, { series }));
}

/// A panel with a chart of the series of one subject: [[name of the series, its words], ...].
export function history_panel(title, history, format, ...names) {
  return (
    history &&
    panel(
      title,
      chart({
        title,
        at: history.at,
        format,
        series: names.map(([name, words]) => ({
          name: words,
          values: history.series.find((each) => each.name === name)?.values ?? []
        }))
      })
    )
  );
}
