// Stores: a list; a store with its health, its names and what the doctor finds; the keys of a name.

import { get, post_empty, url } from './api.js';
import { history_panel, load_history } from './chart.js';
import { action_button } from './dialog.js';
import {
  actions,
  address,
  ago,
  at_least,
  badge,
  bounded,
  button,
  bytes,
  complaint,
  copyable,
  count,
  data,
  facts,
  go,
  h,
  members,
  number,
  p,
  panel,
  whole
} from './dom.js';
import { amount, column, name_of, next_page, table, text, time } from './table.js';

const most_clean_steps = 10_000;

export function stores(view) {
  if (view.path.length > 2) return name_page(view);
  return view.path.length > 1 ? store_page(view) : list_page(view);
}

function state_of({ health }) {
  if (!health) return badge('plain', 'not asked yet');
  if (!health.available) return badge('bad', 'does not answer');
  return health.healthy ? badge('good', 'healthy') : badge('warn', 'answers, with a problem');
}

function findings_of({ findings }) {
  if (!findings) return 'not examined yet';
  const levels = Object.entries(findings).filter(([level]) => level !== 'at');
  return levels.length
    ? badge('warn', levels.map(([level, total]) => `${total} ${level}`).join(', '))
    : badge('good', 'none');
}

function list_page(view) {
  return {
    title: 'Stores',
    every: 10,
    load: (signal) => get(url`/v1/stores`, signal),
    render: ({ items }) =>
      table(
        view,
        'Stores',
        [
          name_of('Store', 'stores'),
          column('State', state_of),
          amount('Not saved yet', 'health', (health) => number(health?.unsaved)),
          column('Findings', findings_of),
          text('Database', 'url', 80)
        ],
        items,
        { key: 'name', none: 'No stores.' }
      )
  };
}

function store_page(view) {
  const name = view.path[1];
  const tenant = view.query.tenant ?? view.session.tenant;
  const guarded = (call) => call.catch((failure) => ({ failure }));
  // The doctor looks at the tables: once for a visit, and when it is asked.
  let report = null;
  return {
    title: name,
    every: 15,
    load: async (signal) => {
      const [store, names, history] = await Promise.all([
        get(url`/v1/stores/${name}`, signal),
        guarded(get(url`/v1/stores/${name}/names`, signal, { after: view.query.after, tenant })),
        view.sees_all() ? load_history([`store.unsaved:${name}`], signal) : null
      ]);
      report ??= await guarded(get(url`/v1/stores/${name}/doctor`, signal));
      return { store, names, history, report };
    },
    render: (loaded) => {
      const { health, options, url: database } = loaded.store;
      const names = loaded.names.items ?? [];
      const expired = names.reduce((sum, each) => sum + Number(each.expired), 0);
      const is_bound = loaded.names.atLeast || names.some(({ atLeast }) => atLeast);
      return [
        p(state_of(loaded.store), health && [' as of ', ago(health.at)]),
        actions(
          button('Examine now', () => {
            report = null;
            view.reload();
          }),
          action_button(view, 'Clean now…', {
            title: 'Remove expired entries',
            verb: 'Clean',
            says: p(
              'Entries of ',
              data(name),
              ` that have expired are deleted: ${at_least(expired, is_bound)}. The others stay.`
            ),
            run: (_, progress) => clean(name, progress)
          })
        ),
        doctor_panel(loaded.report),
        names_panel(view, name, loaded.names),
        h(
          'div',
          { class: 'columns' },
          panel('Health', facts(...members(health))),
          panel('Options', facts(['Database', data(database, 200)], ...members(options))),
          history_panel('Answers not saved yet', loaded.history, whole, [
            'store.unsaved',
            'not saved'
          ])
        )
      ];
    }
  };
}

function doctor_panel(report) {
  if (report.failure) return panel('Doctor', complaint(report.failure.message));
  return panel(
    'Doctor',
    p(
      report.usable
        ? badge('good', 'The table can be used. ')
        : badge('bad', 'The table cannot be used. '),
      data(report.server),
      ', tables ',
      data(report.tables.join(', ')),
      report.skewMicroseconds !== null && `, clock differs by ${number(report.skewMicroseconds)} µs`
    ),
    report.findings.map((finding) =>
      h(
        'div',
        null,
        p(
          badge({ error: 'bad', warning: 'warn' }[finding.severity] ?? 'plain', finding.severity),
          ' ',
          data(finding.problem, 600)
        ),
        finding.advice && p(data(finding.advice, 1000)),
        finding.statement && copyable(finding.statement)
      )
    )
  );
}

export const name_columns = (store, tenant) => [
  column(
    'Name',
    ({ name }) =>
      h(
        'a',
        {
          href: `${address('stores', store, name)}${tenant ? `?${new URLSearchParams({ tenant })}` : ''}`
        },
        data(name, 80)
      ),
    'name'
  ),
  amount('Entries', 'entries', bounded),
  amount('Expired', 'expired'),
  amount('Tombstones', 'tombstones'),
  amount('Size', 'bytes', bytes),
  time('Newest', 'newest'),
  time('Next expiry', 'nextExpiry')
];

function names_panel(view, store, names) {
  if (names.failure) return panel('Names', complaint(names.failure.message));
  return panel(
    'Names',
    table(view, 'Names', name_columns(store, view.query.tenant), names.items, {
      key: 'name',
      none: 'The store is empty.'
    }),
    next_page(view, names)
  );
}

async function clean(name, progress) {
  let removed = 0;
  let is_stopped = false;
  const shown = p();
  progress(
    shown,
    button('Stop', () => {
      is_stopped = true;
    })
  );
  for (let i = 0, more = true; more && !is_stopped && i < most_clean_steps; i += 1) {
    const step = await post_empty(url`/v1/stores/${name}/clean`);
    removed += Number(step.removed);
    more = step.more;
    shown.textContent = `${number(removed)} removed.`;
  }
  return p(
    `${is_stopped ? 'Stopped' : 'Done'}: ${count(removed, 'expired entry', 'expired entries')} removed.`
  );
}

/// A name with a slash cannot be in a path.
const base64url = (name) =>
  btoa(String.fromCharCode(...new TextEncoder().encode(name)))
    .replace(/[+/=]/g, (sign) => ({ '+': '-', '/': '_' })[sign] ?? '');

function name_page(view) {
  const [, store, name] = view.path;
  const { after, tenant = view.session.tenant } = view.query;
  return {
    title: name,
    load: (signal) =>
      get(url`/v1/stores/${store}/${base64url(name)}`, signal, {
        encoding: 'base64url',
        tenant,
        after,
        limit: 100
      }),
    render: (page) => [
      p(
        go(['stores', store], ['Store ', data(store)]),
        page.unreadable > 0 && `; ${number(page.unreadable)} rows cannot be read`
      ),
      table(
        view,
        'Keys',
        [
          text('Key', 'key'),
          time('Version', 'asOf'),
          column('Expires', ({ expires, expired }) => [
            expired && badge('warn', 'expired '),
            ago(expires)
          ]),
          column('Class', (each) => (each.tombstone ? 'tombstone' : data(each.class, 60))),
          amount('Size', 'bytes', bytes)
        ],
        page.items,
        { key: 'key', none: 'No entries have this name.' }
      ),
      next_page(view, page)
    ]
  };
}
