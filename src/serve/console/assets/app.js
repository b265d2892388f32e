// The frame of the console: session, address, navigation, keys. A page is a module that describes
// itself; this module loads its data, and draws it again when the data or the live state changes.
//
//   page(view)        returns {title, load(signal), every, render(data, status)}
//   load              asks the API; again every `every` seconds while the page is seen

import { get, post, problem, remove, url, watch_session } from './api.js';
import { ask, close_dialog, explain_failure } from './dialog.js';
import {
  badge,
  button,
  clock_time,
  data,
  facts,
  h,
  links,
  morph,
  number,
  p,
  refresh_times,
  visible
} from './dom.js';
import { announce, listen, live, start_live, stop_live } from './live.js';
import { instances } from './instances.js';
import { incidents } from './incidents.js';
import { audit } from './audit.js';
import { outbox } from './outbox.js';
import { overview } from './overview.js';
import { points } from './points.js';
import { explanation, search } from './search.js';
import { sequences } from './sequences.js';
import { settings } from './settings.js';
import { stores } from './stores.js';
import { tenants } from './tenants.js';

// The first part of the address, the name, the key after `g`, the page.
const pages = [
  ['', 'Overview', 'v', overview],
  ['points', 'Points', 'p', points],
  ['outbox', 'Outbox', 'o', outbox],
  ['sequences', 'Sequences', 's', sequences],
  ['stores', 'Stores', 't', stores],
  ['instances', 'Instances', 'n', instances],
  ['tenants', 'Tenants', 'e', tenants],
  ['incidents', 'Incidents', 'i', incidents],
  ['audit', 'Audit', 'a', audit, 'admin'],
  ['settings', 'Settings', 'c', settings],
  ['search', 'Search', '', search],
  ['explain', 'Explain', '', explanation]
];
const ranks = { app: 0, viewer: 1, operator: 2, admin: 3 };
const keys_setting = 'holdfast.single-keys';

let session = null;
let sign_in_reason = '';
let view = null;
let is_menu_open = false;
let is_drawing = false;

class page_view {
  constructor(hash) {
    const [path, query] = hash.replace(/^#\/?/, '').split('?');
    this.path = path.split('/').filter(Boolean).map(decode);
    this.query = Object.fromEntries(new URLSearchParams(query ?? ''));
    this.abort = new AbortController();
    this.entry = pages.find(([name]) => name === (this.path[0] ?? '')) ?? null;
    this.data = undefined;
    this.failure = null;
    this.is_loading = false;
  }

  get session() {
    return session;
  }

  may(role) {
    return ranks[session.role] >= ranks[role];
  }

  /// Callers with a tenant do not see the numbers of all tenants.
  sees_all() {
    return session.role !== 'app' && !session.tenant;
  }

  /// Draws the page again, with the data it has.
  redraw() {
    draw();
  }

  /// Changes the query of the address, and loads the page again.
  set_query(changes) {
    const query = { ...this.query, ...changes };
    const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ''));
    const path = this.path.map(encodeURIComponent).join('/');
    window.location.hash = `#/${path}${text.size ? `?${text}` : ''}`;
  }

  async reload() {
    if (this.is_loading || this.abort.signal.aborted) return;
    this.is_loading = true;
    try {
      this.data = (await this.page.load?.(this.abort.signal)) ?? null;
      this.failure = null;
      this.loaded_at = new Date();
    } catch (failure) {
      if (!this.abort.signal.aborted) this.failure = failure;
      if (!(failure instanceof problem) && failure.name !== 'AbortError') console.error(failure);
    }
    this.is_loading = false;
    if (!this.abort.signal.aborted) draw();
  }
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function open_address() {
  const same_page = view && new page_view(location.hash).path.join('/') === view.path.join('/');
  view?.abort.abort();
  close_dialog();
  const previous = view;
  view = new page_view(location.hash);
  is_menu_open = false;
  if (!session) return;
  view.page = view.entry ? view.entry[3](view) : not_found();
  // The old rows stay until the new ones are there.
  if (same_page) view.data = previous.data;
  draw();
  await view.reload();
  if (!same_page) {
    window.scrollTo(0, 0);
    document.querySelector('h1')?.focus({ preventScroll: true });
  }
}

const not_found = () => ({
  title: 'No such page',
  render: () => [p('This address leads nowhere. ', h('a', { href: '#/' }, 'Overview'))]
});

function draw() {
  if (is_drawing) return;
  is_drawing = true;
  queueMicrotask(() => {
    is_drawing = false;
    const frame = session ? draw_page() : draw_sign_in();
    morph(document.getElementById('frame'), frame);
  });
}

function draw_page() {
  const { page } = view;
  const label = live.status?.label ?? '';
  document.title = [visible(page.title).slice(0, 80), label && visible(label), 'Holdfast']
    .filter(Boolean)
    .join(' · ');
  return h(
    'div',
    { id: 'frame', class: live.lost ? 'frame lost' : 'frame' },
    draw_header(label),
    draw_banner(),
    draw_navigation(),
    h(
      'main',
      { id: 'main', tabindex: '-1', 'data-key': `page ${view.path.join('/')}` },
      h('h1', { tabindex: '-1' }, data(page.title)),
      draw_content(page)
    )
  );
}

function draw_content(page) {
  const failure =
    view.failure &&
    h(
      'div',
      { class: 'problem', role: 'alert' },
      p(
        view.data === undefined ? '' : `Shown as of ${clock_time(view.loaded_at)}. `,
        explain_failure(view.failure)
      ),
      button('Try again', () => view.reload())
    );
  if (page.load && view.data === undefined)
    return failure ?? h('p', { class: 'muted', 'aria-busy': 'true' }, 'Loading…');
  return [failure, page.render(view.data, live.status ?? undefined)];
}

function draw_header(label) {
  const is_production = /prod|live/i.test(label);
  return h(
    'header',
    { class: is_production ? 'production' : null },
    h('a', { class: 'brand', href: '#/' }, h('span', { 'aria-hidden': 'true' }, '⊓'), ' Holdfast'),
    label && h('span', { class: is_production ? 'label production' : 'label' }, data(label, 30)),
    h(
      'form',
      {
        class: 'search',
        role: 'search',
        onsubmit: (event) => {
          event.preventDefault();
          const text = event.target.elements.q.value.trim();
          if (text) location.hash = `#/search?${new URLSearchParams({ q: text })}`;
        }
      },
      h('label', { class: 'hidden', for: 'search' }, 'Search'),
      h('input', {
        id: 'search',
        name: 'q',
        type: 'search',
        placeholder: 'Id, key, URL or name ( / )',
        autocomplete: 'off',
        spellcheck: 'false',
        value: view.query.q ?? ''
      })
    ),
    button(
      'Menu',
      () => {
        is_menu_open = !is_menu_open;
        draw();
      },
      { class: 'menu', 'aria-expanded': String(is_menu_open), 'aria-controls': 'pages' }
    ),
    h(
      'div',
      { class: 'user' },
      h('span', null, data(session.name, 30), ` (${session.role})`),
      button('Keys', show_keys, { class: 'small' }),
      session.endsAt && button('Sign out', sign_out, { class: 'small' })
    )
  );
}

function draw_banner() {
  const text = live.lost && [
    'No connection to the server since ',
    clock_time(live.lost),
    '. The numbers are from then; this page tries again.'
  ];
  return h('div', { class: 'banner', role: 'status', hidden: !text }, text && badge('bad', text));
}

function draw_navigation() {
  return h(
    'nav',
    { id: 'pages', class: is_menu_open ? 'pages-list open' : 'pages-list', 'aria-label': 'Pages' },
    links(
      pages
        .filter(([, , key, , role]) => key && (!role || view.may(role)))
        .map(([name, title]) => [`#/${name}`, view.entry?.[0] === name, title, worries(name)])
    )
  );
}

/// A sign beside the pages that have something wrong.
function worries(name) {
  const { incidents: open = [], outboxes = [] } = live.status ?? {};
  const parked = outboxes.reduce((sum, each) => sum + (each.parked ?? 0), 0);
  const is_bound = outboxes.some(({ atLeast }) => atLeast);
  const [total, words, sign = ''] =
    { incidents: [open.length, ' open'], outbox: [parked, ' parked', is_bound ? '+' : ''] }[name] ??
    [];
  return (
    total > 0 &&
    h('span', { class: 'worry' }, ` ${number(total)}${sign}`, h('span', { class: 'hidden' }, words))
  );
}

function draw_sign_in() {
  document.title = 'Sign in · Holdfast';
  return h(
    'div',
    { id: 'frame' },
    h(
      'main',
      { id: 'main', class: 'sign-in', 'data-key': 'sign-in' },
      h('h1', { tabindex: '-1' }, 'Holdfast'),
      sign_in_reason && h('p', { class: 'problem', role: 'alert' }, data(sign_in_reason, 300)),
      h(
        'form',
        {
          onsubmit: async (event) => {
            event.preventDefault();
            const field = event.target.elements.token;
            await sign_in({ token: field.value.trim() });
            field.value = '';
          }
        },
        h(
          'label',
          null,
          h('span', null, 'Token'),
          h('input', { autocomplete: 'username', hidden: true }),
          h('input', {
            name: 'token',
            type: 'password',
            required: true,
            autocomplete: 'current-password',
            'aria-describedby': 'token-help'
          })
        ),
        h(
          'p',
          { class: 'muted', id: 'token-help' },
          'Make one where the server runs: ',
          h('code', null, 'holdfast serve token add --role operator')
        ),
        h('button', { type: 'submit', class: 'primary' }, 'Sign in')
      )
    )
  );
}

async function sign_in(credentials) {
  try {
    session = await post(url`/v1/session`, credentials);
    begin();
    announce('signed-in');
  } catch (failure) {
    sign_in_reason = failure.message;
    draw();
  }
}

async function sign_out() {
  await remove(url`/v1/session`).catch(() => {});
  end_session('You have signed out.');
  announce('signed-out');
}

function end_session(reason) {
  if (!session) return;
  session = null;
  sign_in_reason = reason;
  view?.abort.abort();
  close_dialog();
  stop_live();
  live.status = null;
  draw();
  setTimeout(() => document.querySelector('[type=password]')?.focus(), 0);
}

const session_ended = () =>
  end_session('Your session has ended. Sign in again; then this page comes back.');

function begin() {
  sign_in_reason = '';
  view = new page_view(location.hash);
  if (view.sees_all()) start_live(session_ended);
  open_address();
}

function show_keys() {
  const enabled = single_keys();
  return ask({
    title: 'Keys',
    verb: 'Save',
    says: facts(
      ['/', 'Search'],
      ['?', 'This list'],
      ...pages.filter(([, , key]) => key).map(([, title, key]) => [`g ${key}`, title])
    ),
    fields: [
      {
        name: 'keys',
        label: 'Single keys',
        options: (enabled ? ['on', 'off'] : ['off', 'on']).map((each) => [each, each])
      }
    ],
    run: (values) => {
      localStorage.setItem(keys_setting, values.keys);
      return p('Saved.');
    }
  });
}

const single_keys = () => localStorage.getItem(keys_setting) !== 'off';

let is_going = false;
document.addEventListener('keydown', (event) => {
  const typing = event.target.closest?.('input, textarea, select, dialog');
  if (!session || typing || event.ctrlKey || event.metaKey || event.altKey || !single_keys())
    return;
  const target = is_going && pages.find(([, , key]) => key && key === event.key);
  is_going = event.key === 'g';
  if (target) location.hash = `#/${target[0]}`;
  else if (event.key === '/') document.getElementById('search').focus();
  else if (event.key === '?') show_keys();
  else return;
  event.preventDefault();
});

// An address of a page is in the fragment, which this link has not.
document.getElementById('skip').onclick = (event) => {
  event.preventDefault();
  document.getElementById('main').focus();
};

listen((kind) => {
  // In another tab.
  if (kind === 'signed-in' && !session) start();
  if (!session || !view?.page) return;
  if (kind === 'found') view.reload();
  if (['lost', 'found', 'state'].includes(kind)) draw();
});
watch_session(session_ended);
window.addEventListener('hashchange', open_address);
setInterval(() => {
  refresh_times();
  const { page, loaded_at: loaded } = view ?? {};
  if (!session || document.hidden || !page?.every || !loaded || live.lost) return;
  // What is gone does not come back.
  if (view.failure?.status === 404) return;
  if (Date.now() - loaded >= page.every * 1000) view.reload();
}, 1000);

/// The link of the first start has its secret in the fragment. It leaves the address at once.
async function start() {
  const link = /^#sign-in=(.+)$/.exec(location.hash);
  if (link) {
    history.replaceState(null, '', '/');
    await sign_in({ link: link[1] });
    if (session) return;
  }
  try {
    session = await get(url`/v1/session`);
  } catch (failure) {
    if (failure.status !== 401) sign_in_reason = failure.message;
    draw();
    return;
  }
  begin();
}

start();
