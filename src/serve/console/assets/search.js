// The search for an id, a key, a URL or a name; and the explanation of an answer.

import { get, url } from './api.js';
import { current_status } from './live.js';
import { address, data, facts, go, members, muted, p, panel, verdict } from './dom.js';
import { column, table, text } from './table.js';

/// The address of a hit, where it is, and its text, if that is not the last part of the address.
const places = {
  point: ({ point }) => [['points', point]],
  outbox: ({ name }) => [['outbox', name]],
  store: ({ name }) => [['stores', name]],
  instance: ({ name }) => [['instances', name]],
  name: ({ store, name }) => [['stores', store, name], `store ${store}`],
  entry: ({ store, name, key }) => [['stores', store, name], `${name}, store ${store}`, key],
  event: ({ outbox, id, state }) => [
    ['outbox', outbox, 'events', id],
    `${state}, outbox ${outbox}`
  ],
  sequence: ({ sequence }) => [['sequences', sequence]]
};
const place_of = (hit) => places[hit.kind](hit);

/// Outboxes, stores, instances and points of other programs are in the state, not in a database.
function add_reported({ items, q }, status) {
  for (const [kind, all] of [
    ['outbox', status.outboxes],
    ['store', status.stores],
    ['instance', status.instances],
    ['point', status.points.filter(({ own }) => !own)]
  ])
    for (const { id, name = id } of all)
      if (name.includes(q) && items.length < 100) items.push({ kind, name, point: name });
}

export function search(view) {
  const { q } = view.query;
  return {
    title: 'Search',
    load: async (signal) => {
      const found = q ? await get(url`/v1/search`, signal, { q }) : null;
      if (found && view.sees_all()) add_reported(found, await current_status());
      // One hit needs no list.
      if (found?.items.length === 1 && found.complete)
        window.location.replace(address(...place_of(found.items[0])[0]));
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
                column('Found', (hit) => {
                  const [parts, , name] = place_of(hit);
                  return go(parts, name && data(name, 80));
                }),
                text('Kind', 'kind'),
                column('Where', (hit) => data(place_of(hit)[1]))
              ],
              found.items,
              { none: 'Nothing has this id, key or name. A list of events finds types and keys.' }
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
    load: (signal) => get(url`/v1/explain/${ref}`, signal),
    render: (decision) => [
      verdict(data(decision.says, 1000)),
      p(go(['points', decision.point], ['Point ', data(decision.point)])),
      panel('Facts', facts(...members({ ...decision, says: '', point: '' })))
    ]
  };
}
