// Tokens, bulk actions, and the configuration in force.

import { get, post, remove, url } from './api.js';
import { action_button } from './dialog.js';
import { badge, button, copyable, data, facts, moment, p, panel } from './dom.js';
import { amount, column, table, text, time } from './table.js';

export function settings(view) {
  const { name, role, tenant, endsAt } = view.session;
  return {
    title: 'Settings',
    load: async (signal) => {
      const [tokens, configuration, jobs] = await Promise.all([
        view.may('admin') ? get(url`/v1/tokens`, signal, { limit: 1000 }) : null,
        view.may('operator') && !tenant ? get(url`/v1/configuration`, signal) : null,
        view.may('operator') ? get(url`/v1/jobs`, signal) : null
      ]);
      return { tokens, configuration, jobs };
    },
    render: ({ tokens, configuration, jobs }) => [
      panel(
        'You',
        facts(
          ['Name', data(name)],
          ['Role', role],
          ['Tenant', tenant && data(tenant)],
          [
            'Session ends',
            endsAt ? moment(endsAt) : 'no session'
          ]
        )
      ),
      tokens && tokens_panel(view, tokens),
      jobs &&
        panel(
          'Bulk actions',
          table(
            view,
            'Bulk actions',
            [
              text('Action', 'kind'),
              text('What', 'subject', 80),
              column('State', ({ state }) => badge(state === 'failed' ? 'bad' : 'plain', state)),
              amount('Changed', 'changed'),
              text('By', 'caller', 60),
              time('Started', 'startedAt'),
              column(
                'Actions',
                ({ id, state }) =>
                  state === 'running' &&
                  button('Stop', async () => {
                    await remove(url`/v1/jobs/${id}`);
                    view.reload();
                  })
              )
            ],
            jobs.items,
            { key: 'id', none: 'None since the server was started.' }
          )
        ),
      configuration &&
        panel(
            'Configuration in force',
            p(
              configuration.file ? ['File ', data(configuration.file), '. '] : 'No file. ',
              'Secrets are not shown.'
            ),
            table(
              view,
              'Configuration',
              [
                text('Key', 'key'),
                text('Value', 'value', 200),
                amount('Line', 'line', (line) => line || 'default')
              ],
              configuration.items,
              { key: 'key' }
            )
          )
    ]
  };
}

function tokens_panel(view, tokens) {
  return panel(
    'Tokens',
    action_button(view, 'Add a token…', {
      role: 'admin',
      title: 'Add a token',
      verb: 'Add',
      says: p('Its secret is shown once.'),
      fields: [
        { name: 'name', label: 'Name', required: true, help: 'In lists and in the audit log.' },
        {
          name: 'role',
          label: 'Role',
          options: [
            ['viewer', 'viewer: sees'],
            ['operator', 'operator: acts, too'],
            ['app', 'app: a program'],
            ['admin', 'admin: everything']
          ]
        },
        {
          name: 'scopes',
          label: 'Scopes of an app',
          help: 'Separated by spaces: outbox:orders:publish. Empty: all.'
        },
        { name: 'tenant', label: 'Tenant', help: 'Empty: all.' },
        {
          name: 'expiresIn',
          label: 'Valid for',
          value: '90d',
          required: true,
          help: 'For example 12h, 90d.'
        }
      ],
      run: async ({ name, role, scopes, tenant, expiresIn }) => {
        const body = {
          name,
          role,
          expiresIn,
          scopes: scopes.split(/\s+/).filter(Boolean),
          tenant: tenant.trim()
        };
        const token = await post(url`/v1/tokens`, body);
        return [
          p('The secret of ', data(token.name), '. It is not shown again:'),
          copyable(token.token)
        ];
      }
    }),
    table(
      view,
      'Tokens',
      [
        text('Name', 'name', 60),
        text('Id', 'id'),
        column(
          'State',
          ({ state }) => badge({ active: 'good', expired: 'warn' }[state] ?? 'plain', state),
          'state'
        ),
        column(
          'Role',
          ({ role, tenant }) => [role, tenant && [' of ', data(tenant, 40)]],
          'role'
        ),
        column('Scopes', ({ scopes, role }) =>
          scopes.length ? data(scopes.join(' '), 160) : role === 'app' && 'all'
        ),
        time('Last used', 'lastUsedAt'),
        time('Expires', 'expiresAt'),
        column(
          'Actions',
          ({ id, name, state }) =>
            state === 'active' &&
            action_button(
              view,
              'Revoke…',
              {
                role: 'admin',
                title: 'Revoke a token',
                verb: 'Revoke',
                danger: true,
                confirm: name,
                says: p(
                  'Programs and sessions that use ',
                  data(name),
                  ' are refused within two seconds. It cannot be undone.'
                ),
                run: async () => {
                  await remove(url`/v1/tokens/${id}`);
                  return p('Revoked.');
                }
              },
              { class: 'small', 'aria-label': `Revoke the token ${name.slice(0, 80)}` }
            )
        )
      ],
      tokens.items,
      { key: 'id', none: 'No tokens.' }
    )
  );
}
