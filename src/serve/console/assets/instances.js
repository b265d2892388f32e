// Processes that report to the databases of the server.

import { badge, count, number, p } from './dom.js';
import { current_status } from './live.js';
import { instance_columns } from './overview.js';
import { filters, table } from './table.js';

export function instances(view) {
  return {
    title: ['Instances', view.path[1]].filter(Boolean).join(': '),
    load: current_status,
    render: (loaded, { instances: all } = loaded) => {
      const silent = all.filter((each) => each.silent).length;
      const text = view.path[1] ?? view.query.q ?? '';
      const rows = all.filter((each) => `${each.id} ${each.kind}`.includes(text));
      return [
        p(
          silent
            ? badge('bad', `${number(silent)} of ${number(all.length)} instances are silent.`)
            : badge('good', `${count(all.length, 'instance')} reported.`)
        ),
        filters(view, ['q', 'Name or kind']),
        table(view, 'Instances', instance_columns, rows, {
          key: 'id',
          order: '-State',
          none: 'No process reports.'
        })
      ];
    }
  };
}
