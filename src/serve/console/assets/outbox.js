// Outboxes: a list; an outbox with its lanes and its parked events, grouped by type and error; lists
// of events; one event with its history, and what to do about it.

import { get, post, post_empty, url } from './api.js';
import { history_panel, load_history } from './chart.js';
import { action_button, pause, run_job } from './dialog.js';
import {
  actions,
  address,
  ago,
  at_least,
  badge,
  bounded,
  count,
  data,
  facts,
  go,
  h,
  links,
  members,
  moment,
  muted,
  number,
  p,
  panel,
  rate,
  verdict,
  whole
} from './dom.js';
import { outbox_columns, outbox_state } from './overview.js';
import { payload_panel, reveal_button } from './points.js';
import { amount, column, filters, next_page, table, text, time } from './table.js';

const proof_wait = 60_000;

export function outbox(view) {
  const [, name, kind, id] = view.path;
  if (!name) return list_page(view);
  if (kind === 'events' && id) return event_page(view, name, id);
  if (kind === 'events' || kind === 'parked') return events_page(view, name, kind === 'parked');
  return kind === 'tickets' ? ticket_page(view, name) : outbox_page(view, name);
}

function list_page(view) {
  return {
    title: 'Outboxes',
    every: 10,
    load: (signal) => get(url`/v1/outboxes`, signal),
    render: ({ items }, status) =>
      table(
        view,
        'Outboxes',
        outbox_columns(),
        items.map((each) => ({
          ...each,
          ...status?.outboxes.find(({ name }) => name === each.name)
        })),
        { key: 'name', none: 'No outboxes, or none that this token may read.' }
      )
  };
}

function tabs(view, name) {
  const place = (words, part = '') => [
    address('outbox', name, ...[part].filter(Boolean)),
    (view.path[2] ?? '') === part,
    words
  ];
  return h(
    'nav',
    { class: 'tabs', 'aria-label': 'Parts of the outbox' },
    links([
      place('Summary'),
      place('Parked events', 'parked'),
      place('All events', 'events'),
      place('Tickets', 'tickets')
    ])
  );
}

function outbox_page(view, name) {
  const page = {
    title: name,
    every: 5,
    load: async (signal) => {
      const series = ['pending', 'parked', 'publishedRate', 'ackedRate'].map(
        (each) => `outbox.${each}:${name}`
      );
      const [stats, groups, history] = await Promise.all([
        get(url`/v1/outboxes/${name}`, signal),
        get(url`/v1/outboxes/${name}/parked/groups`, signal),
        view.sees_all() ? load_history(series, signal) : null
      ]);
      // Many events are looked at less often.
      page.every = groups.atLeast ? 30 : 5;
      return { stats, groups, history };
    },
    render: ({ stats, groups, history }, status) => {
      return [
        tabs(view, name),
        p(
          outbox_state({ ...stats, ...status?.outboxes.find((each) => each.name === name) })
        ),
        outbox_actions(view, name, stats),
        groups_panel(view, name, groups),
        h(
          'div',
          { class: 'columns' },
          history_panel(
            'Events a second',
            history,
            rate,
            ['outbox.ackedRate', 'delivered'],
            ['outbox.publishedRate', 'published']
          ),
          history_panel(
            'Events',
            history,
            whole,
            ['outbox.pending', 'pending'],
            ['outbox.parked', 'parked']
          ),
          panel('Numbers', facts(...members({ ...stats, name: '', lanes: '', available: '' }))),
          panel(
            'Lanes',
            table(
              view,
              'Lanes',
              [
                column(
                  'Lane',
                  ({ lane }) => String(lane),
                  'lane'
                ),
                column('State', outbox_state),
                amount('Pending', 'pending', bounded),
                amount('Parked', 'parked', bounded),
                amount('Delivered', 'totals', ({ acked }) => number(acked))
              ],
              stats.lanes,
              { key: 'lane' }
            )
          )
        )
      ];
    }
  };
  return page;
}

function outbox_actions(view, name, { paused, pending, events, lanes }) {
  const [title, verb, path, done] = paused
    ? [
        'Resume the delivery',
        'Resume',
        url`/v1/outboxes/${name}/resume`,
        'Workers get events again.'
      ]
    : [
        'Pause the delivery',
        'Pause',
        url`/v1/outboxes/${name}/pause`,
        'Nothing is delivered until the delivery is resumed.'
      ];
  return actions(
    action_button(view, `${verb}…`, {
      title,
      verb,
      says: p(
        `All ${count(lanes.length, 'lane')} of `,
        data(name),
        paused
          ? ` deliver again, to every worker. Pending: ${count(pending, 'event')}.`
          : ' stop delivering, to every worker. Publishing goes on, and what a worker has already is settled.'
      ),
      run: async () => {
        await post_empty(path);
        return p(`Done. ${done}`);
      }
    }),
    action_button(view, 'Check…', {
      title: 'Check the data',
      verb: 'Check',
      says: p(
        `${count(events, 'event')} of `,
        data(name),
        ', their order and the counters are compared, in steps. A repair changes what does not match.'
      ),
      fields: [
        {
          name: 'repair',
          label: 'Kind',
          options: [
            ['no', 'look only'],
            ['yes', 'repair, too']
          ]
        }
      ],
      run: ({ repair }, progress) =>
        run_job(
          url`/v1/outboxes/${name}/check`,
          repair === 'yes' ? { repair: true, confirm: name } : {},
          progress,
          'repaired'
        )
    })
  );
}

function groups_panel(view, name, groups) {
  const rows = groups.items
    .map((each) => ({
      ...each,
      select: { type: each.type, error: beginning(each.error) },
      id: JSON.stringify([each.type, each.error]),
      count: Number(each.count)
    }))
    .sort((a, b) => b.count - a.count);
  const filter = ({ select }) =>
    `${address('outbox', name, 'parked')}?${new URLSearchParams(select)}`;
  return panel(
    'Parked events, by type and error',
    groups.atLeast &&
      muted(`Only ${number(groups.examined)} events were looked at: counts are lower bounds.`),
    table(
      view,
      'Groups',
      [
        column(
          'Error',
          (group) => h('a', { href: filter(group) }, data(group.error, 160)),
          'error'
        ),
        text('Type', 'type', 80),
        amount('Events', 'count', (value) => at_least(value, groups.atLeast)),
        time('First', 'first'),
        time('Last', 'last'),
        column('Actions', ({ select, count: total }) =>
          group_buttons(view, name, select, total, groups.atLeast)
        )
      ],
      rows,
      { key: 'id', none: 'No events are parked.' }
    ),
    groups.groups > rows.length &&
      p(`${number(groups.groups)} groups; the ${rows.length} largest are shown.`)
  );
}

/// A text that fits into an address; a star stands for the rest.
function beginning(error) {
  const characters = [...error];
  return characters.length > 400 ? `${characters.slice(0, 400).join('')}*` : error;
}

/// What an action selects, in words.
function describe(select) {
  const parts = Object.entries(select).map(([name, value]) =>
    h('li', null, `${name} `, data(value, 200))
  );
  return [
    p(parts.length ? 'Parked events with' : 'All parked events.'),
    h('ul', null, parts),
    Object.values(select).some((value) => value.endsWith('*')) &&
      p('A * stands for any continuation.')
  ];
}

const most_field = (total) => ({
  name: 'most',
  label: 'At most',
  type: 'number',
  value: String(total),
  required: true,
  help: 'The others stay parked.'
});

function group_buttons(view, name, select, total, is_bound) {
  const words = at_least(count(total, 'event'), is_bound);
  const attributes = (verb) => ({
    class: 'small',
    'aria-label': `${verb} ${words} of the type ${select.type ?? 'any'}`
  });
  return [
    action_button(
      view,
      'Replay…',
      replay_group(name, select, total, words),
      attributes('Replay')
    ),
    ' ',
    action_button(
      view,
      'Discard…',
      {
        title: 'Discard parked events',
        verb: 'Discard',
        danger: true,
        confirm: name,
        says: [
          describe(select),
          p(h('strong', null, words), ': they are deleted and never delivered. This is final.')
        ],
        fields: [most_field(total)],
        run: ({ most }, progress) =>
          run_job(
            url`/v1/outboxes/${name}/discard`,
            { select, atMost: Number(most) },
            progress,
            'discarded'
          )
      },
      attributes('Discard')
    )
  ];
}

/// First one event, then the others: what the receiver says to one is known before all are sent.
function replay_group(name, select, total, words) {
  const replay_all = ({ most }, progress) =>
    run_job(
      url`/v1/outboxes/${name}/replay`,
      { select, atMost: Number(most) },
      progress,
      'replayed'
    );
  return {
    title: 'Replay parked events',
    verb: 'Replay',
    says: [
      describe(select),
      p(h('strong', null, words), ': they are delivered again, with the same ids.')
    ],
    fields: [
      {
        name: 'kind',
        label: 'How',
        options: [
          ['one', 'one first, to see what the receiver says'],
          ['all', 'all of them']
        ].slice(total > 1 ? 0 : 1)
      },
      most_field(total)
    ],
    run: async (values, progress) => {
      if (values.kind === 'all') return replay_all(values, progress);
      const [is_delivered, ...says] = await replay_one(name, select, progress);
      const most = Math.min(values.most, total) - 1;
      return is_delivered && most > 0
        ? {
            says,
            verb: `Replay the rest (${number(most)})`,
            run: (_, progress) => replay_all({ most }, progress)
          }
        : says;
    }
  };
}

/// Replays the first event of a selection, and waits until it was delivered or parked again. Returns
/// whether it was delivered, and what to show.
async function replay_one(name, select, progress) {
  const {
    items: [event]
  } = await get(url`/v1/outboxes/${name}/parked`, null, { ...select, limit: 1 });
  if (!event) return [false, p('No event matches any more. Nothing was done.')];
  await post(url`/v1/outboxes/${name}/replay`, { ids: [event.id] });
  const place = go(['outbox', name, 'events', event.id]);
  progress(p(place, ' is due again. Waiting for the receiver…'));
  for (const end = Date.now() + proof_wait; Date.now() < end;) {
    await pause(500);
    // A list answers 200, also when the event is gone.
    const page = await get(url`/v1/outboxes/${name}/events`, null, {
      type: event.type,
      key: event.key,
      limit: 1000
    });
    const found = page.items.find(({ id }) => id === event.id);
    if (!found && !page.next)
      return [true, p(badge('good', 'Delivered: '), place, '.')];
    if (found?.state === 'parked')
      return [
        false,
        p(badge('bad', 'Parked again: '), place),
        p('The receiver says: ', data(found.lastError, 600)),
        p('The others stay parked.')
      ];
  }
  return [
    false,
    p(
      badge('warn', 'Not delivered within a minute. '),
      'Is a worker running? ',
      place,
      ' says more. The others stay parked.'
    )
  ];
}

function events_page(view, name, is_parked) {
  const { type, error, key, olderThan, after } = view.query;
  const select = Object.fromEntries(
    Object.entries({ type, error, key, olderThan }).filter(([, value]) => value)
  );
  const parameters = { ...select, after, limit: 100 };
  return {
    title: `${is_parked ? 'Parked events' : 'Events'} of ${name}`,
    load: async (signal) => {
      if (!is_parked)
        return { page: await get(url`/v1/outboxes/${name}/events`, signal, parameters) };
      // One question at a time for each database.
      const page = await get(url`/v1/outboxes/${name}/parked`, signal, parameters);
      return { page, groups: await get(url`/v1/outboxes/${name}/parked/groups`, signal, select) };
    },
    render: ({ page, groups }) => {
      const total = groups?.items.reduce((sum, group) => sum + Number(group.count), 0);
      const is_bound = groups?.atLeast || groups?.groups > groups?.items.length;
      return [
        tabs(view, name),
        filters(
          view,
          ['type', 'Type', 'order.*'],
          ['error', 'Error', 'HTTP status 5*'],
          ['key', 'Key'],
          ['olderThan', 'Older than', '15m']
        ),
        is_parked &&
          actions(
            `Matching: ${at_least(count(total, 'event'), is_bound)} `,
            total > 0 && group_buttons(view, name, select, total, is_bound)
          ),
        table(view, 'Matching events', event_columns(name, is_parked), page.items, {
          key: 'id',
          none: page.next
            ? `None of the ${number(page.examined)} events matches. The next page looks further.`
            : 'No event matches.'
        }),
        next_page(view, page)
      ];
    }
  };
}

const event_columns = (name, is_parked) => [
  column(
    'Event',
    ({ id }) => go(['outbox', name, 'events', id]),
    'id'
  ),
  text('Type', 'type', 60),
  text('Key', 'key', 60),
  is_parked ? time('Parked', 'until') : column('State', event_state, ({ state }) => state),
  text('Last error', 'lastError'),
  amount('Attempts', 'attempts'),
  time('Published', 'createdAt')
];

function event_state({ state, until }) {
  return [
    badge({ parked: 'bad', due: 'good', claimed: 'good', stuck: 'warn' }[state] ?? 'plain', state),
    until && !['parked', 'due'].includes(state) && [' until ', ago(until)]
  ];
}

function event_page(view, name, id) {
  const { reveal } = view.query;
  return {
    title: `Event ${id}`,
    every: 3,
    load: async (signal) => ({
      told: await get(url`/v1/outboxes/${name}/events/${id}/explain`, signal),
      // Once: each look at a payload is audited.
      shown:
        reveal &&
        (view.data?.shown ??
          (await get(url`/v1/outboxes/${name}/events/${id}`, signal, { reveal })))
    }),
    render: ({ told: { says, event }, shown }) => [
      p(go(['outbox', name], ['Outbox ', data(name)])),
      verdict(data(says, 1000)),
      event && [
        actions(
          event.state === 'parked' && one_event_buttons(view, name, event),
          reveal_button(view)
        ),
        panel('History', timeline(event)),
        panel('Event', event_facts(name, event))
      ],
      shown && payload_panel(shown.payload ?? shown.payloadBase64 ?? 'The payload is not shown.')
    ]
  };
}

const event_facts = (name, { behind, payload, until, ...event }) =>
  facts(['Waits behind', behind && go(['outbox', name, 'events', behind])], ...members(event));

function timeline(event) {
  const step = (kind, title, at, words) =>
    h('li', null, badge(kind, title), at && [' ', moment(at)], words && h('div', null, words));
  const words = {
    parked: 'Parked',
    claimed: 'A worker has it until',
    waiting: 'Due',
    retrying: 'Due again'
  };
  return h(
    'ol',
    { class: 'timeline' },
    step('plain', 'Published', event.createdAt),
    event.deliveries > 0 &&
      step(
        'plain',
        count(event.deliveries, 'delivery', 'deliveries'),
        null,
        `${count(event.attempts, 'failed attempt')}, replayed ${count(event.replays, 'time')}`
      ),
    event.lastError && step('bad', 'Last error', null, data(event.lastError, 1000)),
    step(event.state === 'parked' ? 'bad' : 'good', words[event.state] ?? event.state, event.until)
  );
}

function one_event_buttons(view, name, event) {
  const act = (title, verb, says, path, more, attributes) =>
    action_button(
      view,
      `${verb}…`,
      {
        title,
        verb,
        says: p(data(event.id), says),
        ...more,
        run: async () => {
          const { items } = await post(path, { ids: [event.id] });
          const results = {
            replayed: 'replayed, it is due again',
            discarded: 'discarded',
            notParked: 'nothing was done, it is not parked any more'
          };
          return h(
            'ul',
            null,
            items.map(({ id, result }) =>
              h('li', null, data(id), `: ${results[result] ?? result}.`)
            )
          );
        }
      },
      attributes
    );
  return [
    act(
      'Replay this event',
      'Replay',
      ' is delivered again, with the same id.',
      url`/v1/outboxes/${name}/replay`
    ),
    act(
      'Discard this event',
      'Discard',
      ' is deleted and never delivered. This is final.',
      url`/v1/outboxes/${name}/discard`,
      { danger: true, confirm: name },
      { class: 'danger' }
    )
  ];
}

function ticket_page(view, name) {
  const { ticket, key } = view.query;
  return {
    title: `Tickets of ${name}`,
    load: (signal) =>
      ticket ? get(url`/v1/outboxes/${name}/tickets/${ticket}`, signal, { key }) : null,
    render: (event, status) => {
      const own = status?.outboxes.find((each) => each.name === name);
      return [
        tabs(view, name),
        p(
          own && `Waiting: ${count(own.tickets, 'ticket')}. `,
          'A ticket is a scheduled event that can be cancelled.'
        ),
        filters(view, ['ticket', 'Ticket'], ['key', 'Key']),
        event &&
          panel(
            'Ticket',
            facts(['Name', data(ticket)], ['Becomes its event', moment(event.until)]),
            event_facts(name, event)
          )
      ];
    }
  };
}
