// Incidents: a list; an incident with its timeline, notes, and its page for a report.

import { get, post, url } from './api.js';
import { action_button } from './dialog.js';
import { actions, badge, data, go, h, length, moment, muted, number, p, panel } from './dom.js';
import { listen } from './live.js';
import { amount, column, name_of, next_page, table, time } from './table.js';

export function incidents(view) {
  // Incidents change by themselves.
  const end = listen((kind) => {
    if (kind === 'incident') view.reload();
  });
  view.abort.signal.addEventListener('abort', end);
  return view.path.length > 1 ? incident_page(view, view.path[1]) : list_page(view);
}

const state_of = ({ closed }) => (closed ? badge('plain', 'closed') : badge('bad', 'open'));
const length_of = ({ opened, closed }) =>
  length(Math.round((Date.parse(closed ?? new Date()) - Date.parse(opened)) / 1000));

function list_page(view) {
  return {
    title: 'Incidents',
    every: 30,
    load: (signal) => get(url`/v1/incidents`, signal, { after: view.query.after, limit: 50 }),
    render: (page) => [
      table(
        view,
        'Incidents',
        [
          name_of('Incident', 'incidents', 'id'),
          column('State', state_of),
          time('Opened', 'opened'),
          column('Lasted', length_of),
          column('About', ({ subjects }) => data(subjects.join(', '), 160)),
          amount('Entries', 'entries')
        ],
        page.items,
        { key: 'id', none: 'No incidents.' }
      ),
      next_page(view, page)
    ]
  };
}

const kinds = { begin: ['bad', 'began'], end: ['good', 'ended'] };

/// `point countries` leads to the page of the point.
function subject_link(subject) {
  const [kind, ...name] = subject.split(' ');
  const page = { point: 'points', store: 'stores', outbox: 'outbox' }[kind];
  return page ? go([page, name.join(' ')], data(subject, 80)) : data(subject, 80);
}

function incident_page(view, id) {
  return {
    title: `Incident ${id}`,
    every: 15,
    load: (signal) => get(url`/v1/incidents/${id}`, signal),
    render: (incident, status) => [
      p(
        state_of(incident),
        incident.closed ? ' lasted ' : ' for ',
        `${length_of(incident)}, from `,
        moment(incident.opened),
        incident.closed
          ? [' to ', moment(incident.closed)]
          : status?.healthy && '. Nothing is wrong now: it closes after 5 quiet minutes.'
      ),
      p(
        'About ',
        incident.subjects.map((subject, i) => [i ? ', ' : '', subject_link(subject)])
      ),
      actions(
        action_button(view, 'Add a note…', {
          title: 'Add a note',
          verb: 'Add',
          says: p('It is in the timeline and the report, with your name.'),
          fields: [{ name: 'text', label: 'Note', type: 'textarea', required: true }],
          run: async ({ text }) => {
            await post(url`/v1/incidents/${id}/notes`, { text });
            return p('Added.');
          }
        }),
        h(
          'a',
          {
            class: 'button',
            href: `${url`/v1/incidents/${id}`}?format=markdown`,
            download: `incident-${id}.md`
          },
          'Export as Markdown'
        )
      ),
      panel(
        'Timeline',
        h(
          'ol',
          { class: 'timeline' },
          incident.timeline.map((entry) =>
            h(
              'li',
              null,
              badge(...(kinds[entry.kind] ?? ['plain', entry.kind])),
              ' ',
              moment(entry.at),
              h(
                'div',
                null,
                subject_link(entry.subject),
                entry.text && [': ', data(entry.text, 4000)]
              )
            )
          )
        ),
        incident.leftOut > 0 && muted(`${number(incident.leftOut)} more entries were left out.`)
      )
    ]
  };
}
