// Elements, and the texts in them. Text of programs (names, keys, errors) becomes text nodes only:
// the browser refuses innerHTML on this page, so a name cannot become markup.

const svg_namespace = 'http://www.w3.org/2000/svg';
const svg_tags = new Set(['svg', 'path', 'line', 'g', 'rect', 'defs', 'pattern']);
const handlers = [
  'onclick',
  'onsubmit',
  'onkeydown',
  'onpointermove',
  'onpointerleave',
  'onblur'
];

/// Makes an element. Members of `attributes` that begin with `on` are handlers; null, undefined and
/// false leave an attribute out. Children are nodes, texts, arrays of them, or nothing.
export function h(tag, attributes, ...children) {
  const element = svg_tags.has(tag)
    ? document.createElementNS(svg_namespace, tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value == null || value === false) continue;
    if (name.startsWith('on')) element[name] = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child == null || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/// Changes `target` until it equals `source`. Elements that stay keep their focus, their selection
/// and their scroll position. `data-key` identifies an element among its siblings; an element with
/// `data-keep` belongs to its script, and stays unchanged.
export function morph(target, source) {
  const focused = document.activeElement;
  change(target, source);
  // A row that moved has lost the focus.
  if (focused && focused !== document.activeElement && target.contains(focused)) focused.focus();
}

function change(target, source) {
  if (target.hasAttribute('data-keep')) return;
  for (const { name } of [...target.attributes]) {
    // The reader opens and closes details.
    if (!source.hasAttribute(name) && name !== 'open') target.removeAttribute(name);
  }
  for (const { name, value } of source.attributes) {
    if (target.getAttribute(name) !== value && name !== 'open') target.setAttribute(name, value);
  }
  for (const name of handlers) target[name] = source[name];
  change_children(target, source);
}

function change_children(target, source) {
  const by_key = new Map();
  for (const child of target.children) {
    if (child.dataset.key !== undefined) by_key.set(child.dataset.key, child);
  }
  let next = target.firstChild;
  for (const child of [...source.childNodes]) {
    const key = child.dataset?.key;
    const match = key === undefined ? next : by_key.get(key);
    if (!match || !is_alike(match, child)) {
      target.insertBefore(child, next);
      continue;
    }
    if (match === next) next = next.nextSibling;
    else target.insertBefore(match, next);
    if (match.nodeType === Node.ELEMENT_NODE) change(match, child);
    else if (match.data !== child.data) match.data = child.data;
  }
  while (next) {
    const surplus = next;
    next = next.nextSibling;
    surplus.remove();
  }
}

function is_alike(a, b) {
  return (
    a.nodeType === b.nodeType && a.nodeName === b.nodeName && a.dataset?.key === b.dataset?.key
  );
}

// Control characters, and those that change the direction of text or are invisible.
const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/// Makes invisible characters visible: ⟨U+202E⟩.
export function visible(value) {
  return String(value ?? '')
    .toWellFormed()
    .replace(
      invisible,
      (character) => `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`
    );
}

/// Text of a program, with its own direction, at most `most` characters long.
export function data(value, most = 120) {
  const text = visible(value);
  if (text.length <= most)
    return h('bdi', { class: text.length < 25 ? 'data short' : 'data' }, text || '–');
  return h(
    'bdi',
    { class: 'data', title: text.slice(0, 1000) },
    text.slice(0, most).toWellFormed(),
    h('span', { class: 'muted' }, `… (${number(String(value).length)} characters)`)
  );
}

/// A text for copying: a statement, a key, a secret.
export function copyable(value) {
  const text = String(value);
  const copy = button(
    'Copy',
    async () => {
      await navigator.clipboard.writeText(text);
      copy.textContent = 'Copied';
    },
    { class: 'small' }
  );
  return h(
    'div',
    { class: 'copyable' },
    h(
      'pre',
      { tabindex: '0', role: 'group', 'aria-label': 'Text to copy' },
      visible(text).replaceAll('⟨U+000A⟩', '\n')
    ),
    navigator.clipboard && copy
  );
}

/// Integers of any length, also as texts, because 64 bits do not fit a number of JavaScript.
export function number(value) {
  if (value == null || value === '') return '–';
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

export function count(value, noun, plural = `${noun}s`) {
  return `${number(value)} ${String(value) === '1' ? noun : plural}`;
}

export function at_least(value, is_bound) {
  return is_bound ? `at least ${number(value)}` : number(value);
}

/// A number of a row, which says whether it is a lower bound.
export const bounded = (value, { atLeast }) => at_least(value, atLeast);

export function rate(value) {
  if (value == null) return '–';
  if (value === 0) return '0/s';
  if (value < 0.01) return '< 0.01/s';
  return `${value < 10 ? Number(value.toFixed(2)) : number(Math.round(value))}/s`;
}

export function percent(part) {
  if (part == null) return '–';
  const value = part * 100;
  if (value > 0 && value < 0.1) return '< 0.1 %';
  if (value > 99.9 && value < 100) return '> 99.9 %';
  return `${value < 10 || value > 99 ? Number(value.toFixed(1)) : Math.round(value)} %`;
}

/// A mean of whole numbers.
export function whole(value) {
  if (value > 0 && value < 10 && !Number.isInteger(value)) return value.toFixed(1);
  return number(value && Math.round(value));
}

export function bytes(value) {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let size = Number(value);
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`;
}

const units_in_seconds = { us: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600, d: 86400 };

/// Seconds of `412s`, `3583346ms`, `86400 s`.
export function seconds(text) {
  const parts = /^(-?\d+(?:\.\d+)?) ?(us|ms|s|m|h|d)$/.exec(text ?? '');
  return parts ? Number(parts[1]) * units_in_seconds[parts[2]] : null;
}

/// `2 h 58 min`: the two largest units.
export function length(total) {
  if (total == null) return '–';
  if (total === 0) return '0 s';
  if (total < 0.001 && total > 0) return `${Math.round(total * 1e6)} µs`;
  if (total < 1) return `${Math.round(total * 1000)} ms`;
  const whole = Math.floor(total);
  const parts = [
    [Math.floor(whole / 86400), 'd'],
    [Math.floor(whole / 3600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'min'],
    [whole % 60, 's']
  ];
  const first = parts.findIndex(([value]) => value > 0);
  return parts
    .slice(first, first + 2)
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(' ');
}

export function duration(text) {
  return length(seconds(text));
}

function distance(moment) {
  const difference = (Date.now() - moment.getTime()) / 1000;
  if (Math.abs(difference) < 2) return 'now';
  return difference > 0
    ? `${length(Math.floor(difference))} ago`
    : `in ${length(Math.floor(-difference))}`;
}

export function clock_time(value) {
  return new Date(value).toLocaleTimeString([], { hour12: false });
}

export function date_time(value) {
  const moment = new Date(value);
  return `${moment.toLocaleDateString('en-CA')} ${clock_time(moment)}`;
}

/// A time, as the distance to now; the exact time is its title.
export function ago(value) {
  if (!value) return '–';
  return h(
    'time',
    { datetime: value, title: `${date_time(value)} (${visible(value)})` },
    distance(new Date(value))
  );
}

/// A time, exact, with its distance.
export function moment(value) {
  if (!value) return '–';
  return [h('span', { class: 'data' }, date_time(value)), ' (', ago(value), ')'];
}

/// The distances grow while a page stays.
export function refresh_times() {
  for (const element of document.querySelectorAll('time[datetime]')) {
    const text = distance(new Date(element.dateTime));
    if (element.textContent !== text) element.textContent = text;
  }
}

const badges = { good: '●', warn: '▲', bad: '✕', plain: '○' };

/// A word with a sign: colour is never the only difference.
export function badge(kind, text) {
  return h(
    'span',
    { class: `badge ${kind}` },
    h('span', { 'aria-hidden': 'true' }, badges[kind], ' '),
    text
  );
}

/// The address of a page.
export const address = (...parts) => `#/${parts.map(encodeURIComponent).join('/')}`;

/// A link to a page, with the last part of its address as text.
export function go(parts, text, most = 80) {
  return h('a', { href: address(...parts) }, text ?? data(parts.at(-1), most));
}

/// Term and value, side by side. Pairs without a value are left out.
export function facts(...pairs) {
  return h(
    'dl',
    { class: 'facts' },
    pairs
      .filter(
        ([, value]) => value != null && value !== '' && value !== false
      )
      .map(([term, value]) => h('div', null, h('dt', null, term), h('dd', null, value)))
  );
}

const is_time = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

/// The members of an object of the API as pairs for `facts`, each shown by its type: `lastError` is
/// `Last error`. Members of an object in it have its name before theirs. Empty ones are left out.
export const members = (object, prefix = '') =>
  Object.entries(object ?? {}).flatMap(([name, value]) => {
    const words = prefix + name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
    if (value === null || value === '' || (name === 'atLeast' && !value)) return [];
    if (typeof value === 'object' && !Array.isArray(value)) return members(value, `${words} `);
    return [
      [
        words[0].toUpperCase() + words.slice(1),
        is_time.test(value)
          ? moment(value)
          : typeof value === 'boolean'
            ? value
              ? 'yes'
              : 'no'
            : /^-?\d{4,}$/.test(value)
              ? /payload$|bytes$/i.test(name)
                ? bytes(value)
                : number(value)
              : seconds(value) !== null
                ? duration(value)
                : data(value, 300)
      ]
    ];
  });

/// A button that is not a part of a form.
export function button(text, onclick, attributes) {
  return h('button', { type: 'button', onclick, ...attributes }, text);
}

/// Links in a list: [address, whether it is this page, words].
export const links = (list) =>
  h(
    'ul',
    null,
    list.map(([href, is_current, ...words]) =>
      h('li', null, h('a', { href, 'aria-current': is_current && 'page' }, words))
    )
  );

export function actions(...children) {
  return h('div', { class: 'actions', role: 'group', 'aria-label': 'Actions' }, ...children);
}

export const p = (...children) => h('p', null, ...children);
export const muted = (...children) => h('p', { class: 'muted' }, ...children);
export const verdict = (...children) => h('p', { class: 'verdict' }, ...children);
export const complaint = (text) => h('p', { class: 'problem' }, data(text, 600));

export function panel(title, ...children) {
  return h('section', { class: 'panel', 'data-key': title }, h('h2', null, title), ...children);
}
