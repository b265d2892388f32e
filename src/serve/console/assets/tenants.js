// Tenants, with the number of their entries in each store.

import { get, url } from './api.js';
import { at_least, complaint, data, panel } from './dom.js';
import { name_columns } from './stores.js';
import { column, name_of, next_page, table } from './table.js';

const total = ({ stores }) => stores.reduce((sum, each) => sum + Number(each.entries), 0);

export function tenants(view) {
  const tenant = view.path[1];
  if (tenant !== undefined)
    return {
      title: `Tenant ${tenant}`,
      load: (signal) => get(url`/v1/tenants/${tenant}`, signal),
      render: ({ stores }) =>
        stores.map((each) =>
          panel(
            `Store ${each.store}`,
            each.problem && complaint(each.problem),
            table(
              view,
              `Names in ${each.store}`,
              name_columns(each.store, tenant),
              each.names ?? [],
              { key: 'name', none: 'No entries.' }
            )
          )
        )
    };
  return {
    title: 'Tenants',
    load: (signal) => get(url`/v1/tenants`, signal, { after: view.query.after, limit: 100 }),
    render: (page) => [
      table(
        view,
        'Tenants',
        [
          name_of('Tenant', 'tenants', 'tenant'),
          column(
            'Entries',
            (each) =>
              at_least(
                total(each),
                each.stores.some(({ atLeast }) => atLeast)
              ),
            total,
            true
          ),
          column('Stores', ({ stores }) => data(stores.map(({ store }) => store).join(', '))),
          column('Problem', ({ stores }) =>
            stores
              .filter(({ problem }) => problem)
              .map(({ store, problem }) => complaint(`${store}: ${problem}`))
          )
        ],
        page.items,
        { key: 'tenant', none: 'No store has tenants.' }
      ),
      next_page(view, page)
    ]
  };
}
