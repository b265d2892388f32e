// The audit log: who changed what.

import { get, url } from './api.js';
import { data, date_time } from './dom.js';
import { amount, column, filters, next_page, table, text } from './table.js';

export function audit(view) {
  const { caller, action, subject, tenant, after } = view.query;
  return {
    title: 'Audit',
    every: 30,
    load: (signal) =>
      get(url`/v1/audit`, signal, { caller, action, subject, tenant, after, limit: 100 }),
    render: (page) => [
      filters(
        view,
        ['caller', 'Who'],
        ['action', 'Action', 'outbox.discard'],
        ['subject', 'What'],
        ['tenant', 'Tenant']
      ),
      table(
        view,
        'Audit log',
        [
          column('When', ({ at }) => data(date_time(at))),
          text('Who', 'caller', 60),
          text('From', 'address'),
          text('Action', 'action'),
          text('What', 'subject'),
          amount('How many', 'count'),
          text('Result', 'result')
        ],
        page.items,
        { key: 'id', none: 'No entries match.' }
      ),
      next_page(view, page)
    ]
  };
}
