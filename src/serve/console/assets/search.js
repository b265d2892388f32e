// The search for an id, a key, a URL or a name; and the explanation of an answer.

import { get, url } from './api.js';
import { live } from './live.js';
import { address, data, facts, go, members, muted, p, panel, verdict } from './dom.js';
import { column, table } from './table.js';

/// The address of a hit, its text, and where it is.
const places = {
  point: (hit) => [['points', hit.point], hit.point],
  name: (hit) => [['stores', hit.store, hit.name], hit.name, `store ${hit.store}`],
  entry: (hit) => [['stores', hit.store, hit.name], hit.key, `${hit.name}, store ${hit.store}`],
  event: (hit) => [
    ['outbox', hit.outbox, 'events', hit.id],
    hit.id,
    `${hit.state}, outbox ${hit.outbox}`
  ],
  sequence: (hit) => [['sequences', hit.sequence], hit.sequence]
};

/// Points of other programs are in the state, and not in a database.
function add_reported({ items, q }) {
  const known = new Set(items.map(({ point }) => point));
  for (const { name } of live.status?.points ?? [])
    if (name.includes(q) && !known.has(name) && items.length < 100)
      items.push({ kind: 'point', point: name });
}

export function search(view) {
  const { q } = view.query;
  return {
    title: 'Search',
    live: false,
    load: async (signal) => {
      const found = q ? await get(url`/v1/search`, signal, { q }) : null;
      if (found) add_reported(found);
      // One hit needs no list.
      if (found?.items.length === 1 && found.complete)
        window.location.replace(address(...places[found.items[0].kind](found.items[0])[0]));
      return found;
    },
    render: (found) =>
      found
        ? [
            p(
              'Looked for ',
              data(found.q),
              '. ',
              !found.complete && 'There may be more: the search stops after 2 seconds. ',
              found.unanswered.length > 0 && [
                'These did not answer: ',
                data(found.unanswered.join(', '), 300)
              ]
            ),
            table(
              view,
              'Hits',
              [
                column('Found', (hit) =>
                  go(places[hit.kind](hit)[0], data(places[hit.kind](hit)[1], 80))
                ),
                column('Kind', ({ kind }) => kind),
                column('Where', (hit) => data(places[hit.kind](hit)[2] ?? ''))
              ],
              found.items,
              { none: 'Nothing has this id, key or name.' }
            ),
            /^[0-9a-z]{6,16}$/.test(q) &&
              p(
                'If it is the reference of an answer: ',
                go(['explain', q], 'explain this answer'),
                '.'
              )
          ]
        : muted('Type an id, a key, a URL or a name into the box above.')
  };
}

export function explanation(view) {
  const ref = view.path[1] ?? '';
  return {
    title: `Answer ${ref}`,
    live: false,
    load: (signal) => get(url`/v1/explain/${ref}`, signal),
    render: (decision) => [
      verdict(data(decision.says, 1000)),
      p(go(['points', decision.point], ['Point ', data(decision.point)])),
      panel('Facts', facts(...members({ ...decision, says: '', point: '' })))
    ]
  };
}
