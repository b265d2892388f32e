// Processes that report to the databases of the server.

import { badge, number, p } from './dom.js';
import { current_status } from './live.js';
import { instance_columns } from './overview.js';
import { filters, table } from './table.js';

export function instances(view) {
  return {
    title: ['Instances', view.path[1]].filter(Boolean).join(': '),
    load: current_status,
    render: (loaded, { instances: all } = loaded) => {
      const [, id] = view.path;
      if (id)
        return table(
          view,
          'Instance',
          instance_columns,
          all.filter((each) => each.id === id),
          { key: 'id', none: 'No process has this name.' }
        );
      const silent = all.filter((each) => each.silent).length;
      const rows = all.filter((each) => `${each.id} ${each.kind}`.includes(view.query.q ?? ''));
      return [
        p(
          silent > 0 &&
            badge('bad', `${number(silent)} of ${number(all.length)} instances are silent.`)
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
