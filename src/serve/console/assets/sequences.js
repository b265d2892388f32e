// Sequences: a list; a counter with its rate, its limits and when it ends.

import { get, post, url } from './api.js';
import { history_panel, load_history } from './chart.js';
import { action_button } from './dialog.js';
import {
  actions,
  badge,
  data,
  facts,
  h,
  length,
  members,
  muted,
  number,
  p,
  panel,
  rate,
  verdict
} from './dom.js';
import { sequence_columns } from './overview.js';
import { next_page, table } from './table.js';

const day = 86_400;

export function sequences(view) {
  return view.path.length > 1 ? sequence_page(view) : list_page(view);
}

function list_page(view) {
  return {
    title: 'Sequences',
    every: 10,
    load: (signal) => get(url`/v1/sequences`, signal, { after: view.query.after, limit: 100 }),
    render: (page, status) => {
      const rates = new Map(status?.sequences.map((each) => [each.name, each.rate]));
      const rows = page.items.map(({ name, counter }) => ({
        name,
        last: counter.last,
        rate: rates.get(name)
      }));
      return [
        table(view, 'Sequences', sequence_columns(), rows, { key: 'name', none: 'No sequences.' }),
        next_page(view, page)
      ];
    }
  };
}

/// A sentence about the end, and how serious it is.
function forecast(sequence, ids_per_second) {
  if (sequence.cycle) return badge('warn', 'begins again at its end: ids repeat');
  if (sequence.remaining === '0') return badge('bad', 'is exhausted');
  if (!ids_per_second) return badge('good', 'no ids are drawn now');
  const remaining = Number(sequence.remaining) / ids_per_second;
  return badge(
    remaining < 30 * day ? 'bad' : remaining < 365 * day ? 'warn' : 'good',
    remaining > 365_000 * day
      ? 'lasts more than 1000 years'
      : `lasts ${length(remaining)} at this rate`
  );
}

function sequence_page(view) {
  const name = view.path[1];
  return {
    title: name,
    every: 5,
    load: async (signal) => {
      const [sequence, history] = await Promise.all([
        get(url`/v1/sequences/${name}`, signal),
        load_history([`sequence.rate:${name}`], signal)
      ]);
      return { sequence, history };
    },
    render: ({ sequence, history }, status) => {
      const now = status?.sequences.find((each) => each.name === name)?.rate ?? sequence.rate ?? 0;
      return [
        verdict(forecast(sequence, now)),
        sequence_actions(view, name, sequence),
        history_panel('Ids a second', history, rate, ['sequence.rate', 'ids']),
        panel(
          'Counter',
          facts(
            ['Rate', rate(now)],
            ...members({ ...sequence, name: '', rate: '', secondsLeft: '' })
          ),
          muted('The last id is the end of the newest block.')
        )
      ];
    }
  };
}

function sequence_actions(view, name, { last, start, counter }) {
  return actions(
    action_button(view, 'Skip ids…', {
      title: 'Skip ids',
      verb: 'Skip',
      says: p(
        'From now on no id up to this one is drawn from ',
        data(name),
        '. Use it after ids came from elsewhere. It cannot be undone.'
      ),
      fields: [
        {
          name: 'id',
          label: 'Highest id that was used elsewhere',
          required: true,
          help: `The last id is ${last}.`
        }
      ],
      run: async (values) => {
        const result = await post(url`/v1/sequences/${name}/ensure`, { id: values.id.trim() });
        return p(`Done. The last id is ${number(result.last)}.`);
      }
    }),
    action_button(
      view,
      'Reset…',
      {
        role: 'admin',
        title: 'Reset the sequence',
        verb: 'Reset',
        danger: true,
        confirm: name,
        says: h(
          'p',
          { class: 'problem' },
          'Ids of ',
          data(name),
          ' can repeat after this. Programs that hold a block go on with it. The counter is changed only if it is still at ',
          number(counter.last),
          '.'
        ),
        fields: [{ name: 'next', label: 'Next id', value: start, required: true }],
        run: async (values) => {
          await post(url`/v1/sequences/${name}/reset`, {
            last: counter.last,
            epoch: counter.epoch,
            next: values.next.trim()
          });
          return p('Done. The next block begins at ', number(values.next), '.');
        }
      },
      { class: 'danger' }
    )
  );
}
