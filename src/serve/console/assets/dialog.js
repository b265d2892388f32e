// Dialogs of actions: what will happen to how many, then the progress, then the result.

import { get, post, remove, url } from './api.js';
import { button, complaint, count, data, facts, h, members, number, p } from './dom.js';

const poll_interval = 500;

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/// `action`: role (operator), title, says (nodes: what will happen), fields ([{name, label, value,
/// type, help}]), confirm (a name that has to be typed), verb (text of the button), danger,
/// run(values, progress): returns the nodes of the result. `progress` shows nodes meanwhile. If
/// there is more to do, it returns {says: nodes, verb, run}, and the dialog goes on with them.
/// Returns when the dialog is closed: true if the action was done.
export function ask(action) {
  return new Promise((resolve) => {
    let is_done = false;
    let { run } = action;
    let values;
    const errors = h('p', { class: 'problem', role: 'alert' });
    const shown = h('div', { role: 'status' });
    const cancel = button('Cancel', () => dialog.close());
    const submit = h(
      'button',
      { type: 'submit', class: action.danger ? 'danger' : 'primary' },
      action.verb
    );
    const typed =
      action.confirm !== undefined &&
      h('input', { name: 'confirm', required: true, autocomplete: 'off', spellcheck: 'false' });
    const inputs = h(
      'div',
      null,
      (action.fields ?? []).map(field),
      typed && h('label', null, h('span', null, 'To confirm, type ', data(action.confirm)), typed)
    );
    const form = h('form', {
      onsubmit: async (event) => {
        event.preventDefault();
        errors.replaceChildren();
        if (typed && typed.value !== action.confirm) {
          errors.replaceChildren('Another text. Nothing was done.');
          typed.focus();
          return;
        }
        // The fields are there for the first step only.
        values ??= Object.fromEntries(new FormData(form));
        submit.disabled = true;
        cancel.disabled = true;
        try {
          const result = await run(values, (...nodes) => shown.replaceChildren(...nodes));
          is_done = true;
          says.remove();
          inputs.remove();
          shown.replaceChildren(h('div', null, result.says ?? result));
          cancel.textContent = 'Close';
          run = result.run;
          if (run) {
            submit.textContent = result.verb;
            submit.disabled = false;
          } else {
            submit.remove();
            cancel.className = 'primary';
          }
        } catch (failure) {
          shown.replaceChildren();
          errors.replaceChildren(...explain_failure(failure));
          submit.disabled = false;
          if (!is_done) values = null;
        }
        cancel.disabled = false;
        (run && is_done ? submit : cancel).focus();
      }
    });
    const says = h('div', null, action.says);
    form.append(
      h('h2', { id: 'dialog-title' }, action.title),
      says,
      inputs,
      shown,
      errors,
      h('div', { class: 'buttons' }, cancel, submit)
    );
    const dialog = h('dialog', { 'aria-labelledby': 'dialog-title' }, form);
    // Escape does not interrupt what runs.
    dialog.addEventListener('cancel', (event) => {
      if (cancel.disabled) event.preventDefault();
    });
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(is_done);
    });
    document.body.append(dialog);
    dialog.showModal();
    // What a person has to fill in.
    [...form.elements].find((each) => each.required && !each.value)?.focus();
  });
}

/// A dialog belongs to its page.
export function close_dialog() {
  document.querySelector('dialog')?.close();
}

function field({ name, label, value, type = 'text', help, options, required }) {
  const id = `field-${name}`;
  const attributes = {
    name,
    required,
    autocomplete: 'off',
    'aria-describedby': help ? `${id}-help` : null
  };
  const input = options
    ? h(
        'select',
        attributes,
        options.map(([key, text]) => h('option', { value: key }, text))
      )
    : type === 'textarea'
      ? h('textarea', { ...attributes, rows: 4 }, value)
      : h('input', { ...attributes, type, value, min: type === 'number' ? '1' : null });
  return h(
    'label',
    null,
    h('span', null, label),
    input,
    help && h('span', { class: 'muted', id: `${id}-help` }, help)
  );
}

/// What went wrong, and what to do.
export function explain_failure(failure) {
  const doubt = failure.in_doubt ? ' It may have happened: look before you repeat it.' : '';
  return [data(failure.message, 1000), `.${doubt}`];
}

/// Shows the progress of a job until it ends, with a button that stops it. Returns the job.
async function follow_job(id, progress, done_word) {
  const bar = h('progress', { 'aria-label': 'Progress' });
  const text = p();
  const stop = button('Stop after this step', async () => {
    stop.disabled = true;
    await remove(url`/v1/jobs/${id}`).catch(() => {});
  });
  progress(bar, text, stop);
  for (;;) {
    const job = await get(url`/v1/jobs/${id}`);
    const total = Number(job.atMost ?? job.matched ?? 0);
    if (total > 0) [bar.max, bar.value] = [total, Math.min(total, Number(job.changed))];
    text.textContent = `${number(job.changed)} ${done_word}, ${number(job.examined)} examined.`;
    if (job.state !== 'running') return job;
    await pause(poll_interval);
  }
}

/// A sentence for a job that has ended.
function job_result(job, done_word) {
  const endings = { done: 'Done', stopped: 'Stopped. What was done stays done', failed: 'Failed' };
  return [
    p(
      h('strong', null, endings[job.state] ?? job.state),
      ': ',
      count(job.changed, 'event'),
      ` ${done_word}, ${number(job.examined)} examined.`
    ),
    job.reason && complaint(job.reason),
    facts(...members(job.result))
  ];
}

/// A button that opens a dialog; nothing if the role of the caller does not suffice.
export function action_button(view, text, action, attributes) {
  return (
    view.may(action.role ?? 'operator') &&
    button(
      text,
      async () => {
        if (await ask(action)) view.reload();
      },
      attributes
    )
  );
}

/// Runs a bulk action, and shows its progress and its result.
export async function run_job(path, body, progress, done_word) {
  const { job } = await post(path, body);
  return job_result(await follow_job(job, progress, done_word), done_word);
}
