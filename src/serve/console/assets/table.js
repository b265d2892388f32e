// Tables that sort, and that become cards on a narrow screen. They stay tables for screen readers.

import { actions, ago, button, data, go, h, muted, number } from './dom.js';

const page_size = 100;
const shown_rows = new Map();

// Columns: {title, value(row), sort, numeric}. One with `sort`, a member or a function of the row,
// has a button.
export const column = (title, value, sort, numeric) => ({ title, value, sort, numeric });
export const text = (title, member, most) =>
  column(title, (row) => data(row[member], most), member);
/// The name of a row, as a link to its page.
export const name_of = (title, page, member = 'name') =>
  column(title, (row) => go([page, row[member]]), member);
export const time = (title, member) => column(title, (row) => ago(row[member]), member);
export const amount = (title, member, show = number) =>
  column(title, (row) => show(row[member], row), member, true);

/// `options`: key (the member that names a row), none (text without rows), order (title of a column,
/// with `-` for descending). The order is a part of the address.
export function table(view, name, columns, rows, { key, none = 'Nothing.', order: first } = {}) {
  if (rows.length === 0) return muted(none);
  const parameter = `${name}.sort`;
  const order = view.query[parameter] ?? first ?? '';
  const by = columns.find(({ title }) => title === order.replace(/^-/, ''));
  const sorted = by?.sort ? sort_rows(rows, by, order.startsWith('-') ? -1 : 1) : rows;
  const most = shown_rows.get(name) ?? page_size;
  return h(
    'div',
    { class: 'table', 'data-key': name },
    h(
      'table',
      { role: 'table', 'aria-label': name },
      h(
        'thead',
        { role: 'rowgroup' },
        h(
          'tr',
          { role: 'row' },
          columns.map((each) => head_cell(view, each, order, parameter))
        )
      ),
      h(
        'tbody',
        { role: 'rowgroup' },
        sorted.slice(0, most).map((row) =>
          h(
            'tr',
            { role: 'row', 'data-key': key && row[key] },
            columns.map((each, i) =>
              h(
                i ? 'td' : 'th',
                {
                  role: i ? 'cell' : 'rowheader',
                  'data-label': each.title,
                  class: each.numeric ? 'numeric' : null
                },
                each.value(row) || '–'
              )
            )
          )
        )
      )
    ),
    sorted.length > most &&
      button(
        `Show more (${number(sorted.length - most)} are not shown)`,
        () => {
          shown_rows.set(name, most + page_size);
          view.redraw();
        }
      )
  );
}

function head_cell(view, { title, sort, numeric }, order, parameter) {
  const is_up = order === title;
  const is_down = order === `-${title}`;
  const attributes = {
    role: 'columnheader',
    class: numeric ? 'numeric' : null,
    'aria-sort': is_up ? 'ascending' : is_down ? 'descending' : null
  };
  if (!sort) return h('th', attributes, title);
  const next = is_down || (!is_up && !numeric) ? title : `-${title}`;
  return h(
    'th',
    attributes,
    button(
      [title, h('span', { 'aria-hidden': 'true' }, is_up ? ' ▴' : is_down ? ' ▾' : '')],
      () => view.set_query({ [parameter]: next }),
      { class: 'sort' }
    )
  );
}

function sort_rows(rows, by, sign) {
  return rows
    .map((row) => [by.sort.call ? by.sort(row) : row[by.sort], row])
    .sort(([a], [b]) => {
      if (a === b) return 0;
      if (a == null) return 1;
      if (b == null) return -1;
      return sign * (typeof a === 'string' ? a.localeCompare(b) : a < b ? -1 : 1);
    })
    .map(([, row]) => row);
}

/// Buttons for the pages of a list of the API.
export function next_page(view, { next }) {
  return (
    (next || view.query.after) &&
    actions(
      view.query.after && button('First page', () => view.set_query({ after: '' })),
      next && button('Next page', () => view.set_query({ after: next }))
    )
  );
}

/// Fields that are a part of the address: [name, label, placeholder].
export function filters(view, ...fields) {
  return h(
    'form',
    {
      class: 'filters',
      role: 'search',
      'aria-label': 'Filter',
      onsubmit: (event) => {
        event.preventDefault();
        view.set_query({ ...Object.fromEntries(new FormData(event.target)), after: '' });
      }
    },
    fields.map(([name, label, placeholder]) =>
      h(
        'label',
        null,
        h('span', null, label),
        h('input', { name, value: view.query[name] ?? '', placeholder, autocomplete: 'off' })
      )
    ),
    h('button', { type: 'submit' }, 'Filter')
  );
}
