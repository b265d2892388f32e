// What is wrong, since when, until when; then everything in one line each, the worst first.

import { get, url } from './api.js';
import { chart, load_history, sparkline } from './chart.js';
import {
  ago,
  at_least,
  badge,
  bounded,
  count,
  data,
  duration,
  go,
  h,
  number,
  p,
  panel,
  percent,
  rate,
  seconds
} from './dom.js';
import { amount, column, name_of, table, text } from './table.js';

const most_rows = 10;
const endings = ['live', 'stale', 'unserved'];

export function overview(view) {
  const { tenant } = view.session;
  if (!view.sees_all())
    return {
      title: 'Overview',
      render: () => [
        p(
          'This token does not see the numbers of all. See ',
          tenant && [go(['tenants', tenant], 'its tenant'), ' and '],
          go(['outbox'], 'its outboxes'),
          '.'
        )
      ]
    };
  return {
    title: 'Overview',
    every: 15,
    load: async (signal) => {
      const status = await get(url`/v1/status`, signal);
      // The sums of all calls, and the lines of the rows that are shown.
      const lines = [
        ['point.rate', status.points, badness],
        ['outbox.pending', status.outboxes, outbox_badness],
        ['sequence.rate', status.sequences, ({ rate: ids }) => ids]
      ].flatMap(([series, rows, badness_of]) =>
        worst(rows, badness_of).map(({ name }) => `${series}:${name}`)
      );
      const sums = endings.map((each) => `calls.${each}`);
      return { status, history: await load_history([...sums, ...lines], signal) };
    },
    render: (loaded, status = loaded.status) => {
      const find = series_by_subject(loaded.history);
      return [
        verdict(status),
        status.points.length > 0 &&
          panel(
            'Calls a second',
            calls_chart(
              loaded.history,
              endings.map((each) => find(`calls.${each}`, 'all'))
            )
          ),
        list(
          view,
          'Points',
          'points',
          point_columns(find),
          status.points,
          badness,
          'No points. [failover.points] of the configuration has them.'
        ),
        h(
          'div',
          { class: 'columns' },
          list(
            view,
            'Outboxes',
            'outbox',
            outbox_columns(find),
            status.outboxes,
            outbox_badness
          ),
          list(view, 'Stores', 'stores', store_columns, status.stores, ({ available }) =>
            available ? 0 : 1
          ),
          list(
            view,
            'Sequences',
            'sequences',
            sequence_columns(find),
            status.sequences,
            (each) => each.rate
          ),
          list(
            view,
            'Instances',
            'instances',
            instance_columns,
            status.instances,
            instance_badness,
            'No other process reports to these databases.'
          )
        )
      ];
    }
  };
}

const worst = (rows, badness_of) =>
  [...rows].sort((a, b) => badness_of(b) - badness_of(a)).slice(0, most_rows);

/// The worst rows, and a link to all of them.
function list(view, title, page, columns, rows, badness_of, none = 'Nothing is configured.') {
  return panel(
    title,
    table(view, title, columns, worst(rows, badness_of), { key: rows[0]?.id ? 'id' : 'name', none }),
    rows.length > most_rows && go([page], `All ${number(rows.length)}`)
  );
}

/// The sentences, the worst first: the first one is the headline. Each is its kind, the name or the
/// text with the sign, and what follows.
function verdict(status) {
  const { points, outboxes, says, incidents, healthy } = status;
  const sentences = [
    ...says.map((text) => ['bad', data(text, 400), until(text, points)]),
    ...outboxes
      .filter(does_not_answer)
      .map(({ name }) => ['bad', go(['outbox', name]), ' does not answer.']),
    status.sequencesProblem && ['bad', 'The sequences do not answer.'],
    ...points
      .filter(({ breaker }) => breaker === 'open')
      .map(({ name }) => ['warn', go(['points', name]), ' has an open breaker.']),
    ...outboxes.flatMap(({ name, parked, atLeast, paused, failing }) =>
      [
        paused && ' is paused.',
        failing && ': every delivery fails.',
        parked > 0 && ` has ${at_least(count(parked, 'event'), atLeast)} parked.`
      ].map((text) => text && ['warn', go(['outbox', name]), text])
    ),
    ...incidents.map((id) => [
      'warn',
      go(['incidents', id], ['Incident ', data(id)]),
      healthy ? ' closes after 5 quiet minutes.' : ' is open.'
    ])
  ].filter(Boolean);
  if (!sentences.length) sentences.push(['good', 'All is well.']);
  // Many of one kind do not hide the others.
  const lines = ['bad', 'warn', 'good'].map((kind) => {
    const all = sentences.filter(([each]) => each === kind);
    return [
      all.slice(0, most_rows).map(([, text, ...rest]) => h('li', null, badge(kind, text), rest)),
      all.length > most_rows && h('li', null, `${all.length - most_rows} more.`)
    ];
  });
  return h(
    'section',
    { class: `verdict ${sentences[0][0]}`, 'aria-label': 'Verdict' },
    h('ul', null, lines)
  );
}

/// How long a point that answers from the store can go on.
function until(sentence, points) {
  const { expires } =
    points.find((each) => each.expires && sentence.startsWith(`${each.name} `)) ?? {};
  return (
    expires && [
      '. Its first answers expire ',
      ago(expires.first),
      ', half of them ',
      ago(expires.half),
      '.'
    ]
  );
}

/// `find(series, subject)`: the values, or nothing.
export function series_by_subject(history) {
  const values = new Map(
    history.series.map((each) => [`${each.name}:${Object.values(each.labels)[0]}`, each.values])
  );
  return (name, subject) => values.get(`${name}:${subject}`);
}

/// Calls a second, by how they were answered: the values of each part.
export function calls_chart({ at }, parts) {
  return chart({
    title: 'Calls a second',
    at,
    stacked: true,
    format: rate,
    series: ['live', 'from the store', 'without an answer'].map((name, i) => ({
      name,
      values: parts[i] ?? []
    }))
  });
}

/// A number by which the worst point comes first.
export function badness(point) {
  return (
    point.unservedRatio * 1000 +
    point.staleRatio * 100 +
    (point.breaker === 'closed' ? 0 : 50) +
    (1 - (point.coverage ?? 1))
  );
}

export function point_state(point) {
  if (point.unservedRatio > 0) return badge('bad', 'leaves calls without an answer');
  if (point.breaker === 'open') return badge('warn', 'breaker open');
  if (point.staleRatio > 0.01) return badge('warn', 'answers from the store');
  return point.rate === 0 ? badge('plain', 'no calls') : badge('good', 'live');
}

const no_series = () => null;

export const point_columns = (find = no_series) => [
  name_of('Point', 'points'),
  column('State', point_state, badness),
  amount('Calls', 'rate', (value, { name }) => [sparkline(find('point.rate', name)), rate(value)]),
  amount('From the store', 'staleRatio', percent),
  amount('Without an answer', 'unservedRatio', percent),
  amount('Covered', 'coverage', percent),
  column(
    'First answers expire',
    ({ expires }) => ago(expires?.first),
    ({ expires }) => expires?.first
  )
];

const does_not_answer = ({ problem, available }) =>
  available === false || (problem && problem !== 'not asked yet');
const outbox_badness = (each) => (seconds(each.overdue) ?? 1e9) + each.parked / 1e9;

export function outbox_state(each) {
  if (does_not_answer(each)) return badge('bad', 'does not answer');
  if (each.paused) return badge('warn', 'paused');
  if (seconds(each.overdue) > 60) return badge('bad', `late by ${duration(each.overdue)}`);
  if (each.failing) return badge('warn', 'every delivery fails');
  return each.parked > 0 ? badge('warn', 'has parked events') : badge('good', 'delivers');
}

export const outbox_columns = (find = no_series) => [
  name_of('Outbox', 'outbox'),
  column('State', outbox_state),
  amount('Pending', 'pending', (value, { name, atLeast }) => [
    sparkline(find('outbox.pending', name)),
    at_least(value, atLeast)
  ]),
  amount('Parked', 'parked', bounded),
  amount('Delivered', 'ackedRate', rate)
];

const store_columns = [
  name_of('Store', 'stores'),
  column('State', (each) =>
    each.available
      ? badge('good', 'answers')
      : [
          badge('bad', 'does not answer '),
          each.asOf && [' as of ', ago(each.asOf)],
          data(each.problem ?? '', 100)
        ]
  ),
  amount('Not saved yet', 'unsaved')
];

export const sequence_columns = (find = no_series) => [
  name_of('Sequence', 'sequences'),
  column(
    'Last',
    ({ last }) => number(last),
    ({ last }) => BigInt(last),
    true
  ),
  amount('Ids', 'rate', (value, { name }) => [sparkline(find('sequence.rate', name)), rate(value)])
];

const instance_badness = (each) => (each.silent ? 2 : each.healthy ? 0 : 1);

export const instance_columns = [
  name_of('Instance', 'instances', 'id'),
  text('Kind', 'kind'),
  column(
    'State',
    (each) =>
      each.silent
        ? badge('bad', `silent for ${duration(each.seen)}`)
        : each.healthy
          ? badge('good', 'healthy')
          : badge('warn', 'has a problem'),
    instance_badness
  ),
  column('Problem', ({ problem }) => problem && data(problem, 200))
];
