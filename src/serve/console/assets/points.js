// Points: a list; a point with its numbers, outlook, coverage, decisions and entries; an entry.

import { get, post, remove, url } from './api.js';
import { load_history } from './chart.js';
import { action_button } from './dialog.js';
import {
  actions,
  at_least,
  badge,
  button,
  bytes,
  clock_time,
  count,
  data,
  facts,
  go,
  h,
  length,
  members,
  moment,
  muted,
  number,
  p,
  panel,
  percent,
  rate,
  verdict
} from './dom.js';
import { current_status } from './live.js';
import { badness, calls_chart, point_columns, point_state, series_by_subject } from './overview.js';
import { amount, column, filters, next_page, table, text, time } from './table.js';

export function points(view) {
  if (view.path.length > 2) return entry_page(view);
  return view.path.length > 1 ? point_page(view) : list_page(view);
}

function list_page(view) {
  return {
    title: 'Points',
    load: current_status,
    render: (loaded, status = loaded) => [
      filters(view, ['q', 'Name contains']),
      table(
        view,
        'Points',
        point_columns(),
        status.points
          .filter(({ name }) => name.includes(view.query.q ?? ''))
          .sort((a, b) => badness(b) - badness(a)),
        { key: 'name', none: 'No points.' }
      )
    ]
  };
}

// The ways in which a call ends.
const endings = [
  ['live', 'the upstream answered'],
  ['fresh', 'a kept answer was new enough'],
  ['stale', 'the upstream failed, a kept answer helped'],
  ['substituted', 'the program had a substitute'],
  ['failed', 'nothing could be served'],
  ['passed', 'the failure is an answer'],
  ['invalidated', 'the call changed what was kept'],
  ['abandoned', 'the caller did not wait']
];

function point_page(view) {
  const name = view.path[1];
  return {
    title: name,
    every: 10,
    load: async (signal) => {
      // Points of other programs are in the state only.
      const { points: all } = await current_status();
      const is_own = all.find((each) => each.name === name)?.own ?? name.length <= 50;
      const [history, point] = await Promise.all([
        load_history(
          ['rate', 'staleRatio', 'unservedRatio'].map((each) => `point.${each}:${name}`),
          signal
        ),
        is_own ? get(url`/v1/points/${name}`, signal) : null
      ]);
      if (!point) return { history };
      const [outlook, decisions, drills, entries] = await Promise.all([
        get(url`/v1/points/${name}/outlook`, signal),
        get(url`/v1/decisions`, signal, { point: name, limit: 50 }),
        get(url`/v1/drills`, signal),
        get(url`/v1/points/${name}/entries`, signal, { after: view.query.after, limit: 20 })
      ]);
      return {
        history,
        point,
        outlook,
        decisions: decisions.items,
        entries,
        drill: drills.items.find((each) => each.point === name)
      };
    },
    render: (loaded, status) => {
      const current = status?.points.find((each) => each.name === name);
      return [
        current &&
          p(
            point_state(current),
            ` ${rate(current.rate)}, `,
            count(current.instances, 'instance'),
            ', ',
            count(current.running, 'call'),
            ' running'
          ),
        loaded.point && point_actions(view, name, loaded.drill),
        loaded.outlook && verdict(data(loaded.outlook.says, 600)),
        loaded.history && panel('Calls', calls_chart(loaded.history, parts_of(loaded.history, name))),
        loaded.point
          ? own_panels(view, name, loaded)
          : muted('Other programs have this point and its entries.')
      ];
    }
  };
}

/// Calls a second of a point that were live, from the store, and without an answer.
function parts_of(history, name) {
  const [rates, stale, failed] = ['rate', 'staleRatio', 'unservedRatio'].map(
    (each) => series_by_subject(history)(`point.${each}`, name) ?? []
  );
  const multiply = (part) => rates.map((value, i) => value && Math.max(0, value * part(i)));
  return [
    multiply((i) => 1 - (stale[i] ?? 0) - (failed[i] ?? 0)),
    multiply((i) => stale[i] ?? 0),
    multiply((i) => failed[i] ?? 0)
  ];
}

function own_panels(view, name, { point, outlook, decisions, drill, entries }) {
  const { numbers } = point.status;
  return [
    decisions_panel(view, decisions),
    h(
      'div',
      { class: 'columns' },
      outlook_panel(outlook),
      panel(
        'How calls ended, since the start',
        table(
          view,
          'Endings',
          [
            column('Ending', ([name]) => name),
            column('Calls', ([name]) => number(numbers[name]), null, true),
            column('Meaning', ([, meaning]) => meaning)
          ],
          endings
        )
      ),
      coverage_panel(point.coverage),
      drill && drill_panel(drill),
      panel('Rules in force', facts(...members(point.rules)))
    ),
    panel(
      'Entries',
      table(
        view,
        'Entries',
        [
          column('Key', ({ key }) => go(['points', name, key], null, 60)),
          time('Answer of', 'asOf'),
          time('Expires', 'expires'),
          column('Class', (each) => (each.tombstone ? 'tombstone' : data(each.payloadClass, 40))),
          amount('Size', 'bytes', bytes)
        ],
        entries.items,
        { key: 'key', none: 'Nothing is kept.' }
      ),
      next_page(view, entries)
    )
  ];
}

function outlook_panel(outlook) {
  return panel(
    'Outlook, if the upstream stays down',
    facts(
      ['First answers expire', outlook.first && moment(outlook.first.at)],
      ['Half of them', outlook.half && moment(outlook.half.at)],
      ['90 % of them', outlook.most && moment(outlook.most.at)],
      ['Kept answers', at_least(outlook.entries, outlook.entriesAtLeast)],
      ...outlook.callsCovered.map(({ until, part }) => [
        `Still answered after ${length((Date.parse(until) - Date.parse(outlook.at)) / 1000)}`,
        percent(part)
      ])
    )
  );
}

function coverage_panel(coverage) {
  return panel(
    'Coverage',
    p(
      coverage.part === null
        ? 'No live call was checked in the last hour.'
        : [
            h('strong', null, percent(coverage.part)),
            ` of ${count(coverage.checked, 'checked call')} could have been served from the store.`
          ]
    ),
    facts(...members({ ...coverage, point: '', part: '', checked: '' }))
  );
}

const is_running = (drill) => drill?.end === 'running';

function drill_panel(drill) {
  return panel(
    'Drill',
    p(
      is_running(drill) ? badge('warn', 'runs') : badge('plain', 'ended'),
      ` ${percent(drill.part)} of the calls`,
      drill.whatIf && ', answers are not touched'
    ),
    facts(...members({ ...drill, point: '', part: '', end: '', whatIf: '' }))
  );
}

function decisions_panel(view, decisions) {
  const causes = new Map();
  for (const { cause, exceptionType } of decisions) {
    const name = exceptionType ? `${cause}: ${exceptionType}` : cause;
    causes.set(name, (causes.get(name) ?? 0) + 1);
  }
  return panel(
    'Last answers that were not live',
    causes.size > 0 &&
      p(
        `Causes of the last ${decisions.length}: `,
        [...causes]
          .sort(([, a], [, b]) => b - a)
          .map(([cause, total], i) => [i ? ', ' : '', data(cause, 80), ` (${total})`])
      ),
    table(
      view,
      'Decisions',
      [
        time('At', 'at'),
        text('What happened', 'says', 400),
        column('Reference', ({ ref }) => go(['explain', ref]))
      ],
      decisions.slice(0, 10),
      { key: 'ref', none: 'All answers were live.' }
    )
  );
}

function point_actions(view, name, drill) {
  return actions(
    action_button(view, 'Invalidate…', invalidation(name)),
    is_running(drill)
      ? action_button(view, 'End the drill', {
          title: 'End the drill',
          verb: 'End it',
          says: p('All calls ask the upstream again.'),
          run: async () => {
            const report = await remove(url`/v1/points/${name}/drill`);
            return p(
              `Ended. ${count(report.served, 'call')} got a kept answer, ${number(report.notCovered)} were not covered.`
            );
          }
        })
      : action_button(view, 'Drill…', {
          title: 'Rehearse an outage',
          verb: 'Start the drill',
          says: p(
            'For a part of the calls of ',
            data(name),
            ' the upstream counts as down. They get kept answers, or ask the upstream if none is kept. It ends by itself.'
          ),
          fields: [
            {
              name: 'percent',
              label: 'Part of the calls, in percent',
              value: '1',
              type: 'number',
              required: true
            },
            {
              name: 'length',
              label: 'For',
              options: [
                ['5m', '5 minutes'],
                ['1m', '1 minute'],
                ['15m', '15 minutes']
              ]
            },
            {
              name: 'kind',
              label: 'Kind',
              options: [
                ['real', 'serve kept answers'],
                ['what-if', 'what if: count only, touch no answer']
              ]
            }
          ],
          run: async (values) => {
            const report = await post(url`/v1/points/${name}/drill`, {
              part: Number(values.percent) / 100,
              length: values.length,
              whatIf: values.kind === 'what-if'
            });
            return p(
              `The drill runs until ${clock_time(report.ends)}. Its numbers are on this page.`
            );
          }
        })
  );
}

/// The dialog for one key; without a key it asks for one.
function invalidation(name, key) {
  return {
    title: 'Invalidate an answer',
    verb: 'Invalidate',
    danger: true,
    says: p(
      'The kept answer of ',
      key ? data(key) : 'one key',
      ' is replaced by a mark that there is none. Until the upstream answers again, calls with this key fail.'
    ),
    fields: key ? [] : [{ name: 'key', label: 'Key of the entry', required: true }],
    run: async (values) => {
      const chosen = key ?? values.key.trim();
      const { invalidated } = await post(url`/v1/points/${name}/invalidate`, { key: chosen });
      return p(
        invalidated
          ? ['Done: ', data(chosen), ' has no answer now.']
          : ['Nothing was changed: ', data(chosen), ' has no entry, or a newer one.']
      );
    }
  };
}

function entry_page(view) {
  const [, name, key] = view.path;
  const { reveal } = view.query;
  return {
    title: `Entry ${key}`,
    load: (signal) => get(url`/v1/points/${name}/entries/${key}`, signal, { reveal }),
    render: (entry) => [
      p(go(['points', name], ['Point ', data(name)])),
      actions(
        reveal_button(view),
        action_button(view, 'Invalidate…', invalidation(name, key), { class: 'danger' })
      ),
      panel('Entry', facts(...members({ ...entry, payload: '' }))),
      payload_panel(entry.payload)
    ]
  };
}

export const reveal_button = (view) =>
  view.may('admin') &&
  !view.query.reveal &&
  button('Show the payload (is audited)', () => view.set_query({ reveal: '1' }));

/// A payload with masked secrets.
export function payload_panel(payload) {
  return (
    payload != null &&
    panel(
      'Payload',
      h(
        'pre',
        { tabindex: '0' },
        typeof payload === 'string' ? data(payload, 65_536) : lines(payload)
      )
    )
  );
}

/// JSON with its line breaks.
const lines = (value) =>
  JSON.stringify(value, null, 2)
    .slice(0, 65_536)
    .split('\n')
    .map((line, i) => [i ? '\n' : '', data(line, 4000)]);
