import type { Row } from './errors.ts'

/** Every event of the process in the log, by subject. Events of one row are separated by commas. */
export const logEvents: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
  'Start, reload and end': {
    'listening, worker_listening, stopping, drain, stopped, config_reloaded': {
      cause: 'The server has started, is being stopped, or has read its configuration again.',
      cure: 'Nothing.',
    },
    drain_cut: {
      cause: 'When `drain_deadline` ended, the server cut the answers that were still running.',
      cure: 'Raise `drain_deadline` if answers need more time.',
    },
    restart_needed: {
      cause: 'The reloaded file changes `keys` that apply only after a restart.',
      cure: 'Restart the server when it suits you.',
    },
    config_rejected: {
      cause: 'The file has a mistake. The previous configuration stays in use.',
      cure: 'Correct the file, or restore the previous one. `triwire check` names the lines.',
    },
    config_warning: {
      cause: 'The configuration has a setting that is allowed but probably a mistake.',
      cure: 'Read the line. `triwire check` lists all such settings.',
    },
    config_differs: {
      cause:
        'The named `replicas` run with another configuration than this server. An empty list means that all replicas have the same configuration again.',
      cure: 'Reload the configuration on the replicas that still have an old one.',
    },
    worker_exited: {
      cause: 'A process of `--workers` ended, its requests were cut, and a new process replaces it.',
      cure: 'Look for an `uncaught` event before this line.',
    },
    worker_waits: {
      cause:
        'An ended worker process is not replaced yet. Either the configuration is invalid (`error`), or it changes `keys` that need a restart of all processes.',
      cure: 'Correct the file, or restart the server.',
    },
    workers_unsupported: {
      cause: 'This operating system cannot share a port between processes, so only one process serves.',
      cure: 'To use more processors, run replicas.',
    },
    'bug, uncaught': {
      cause: 'The program triwire has a bug. `uncaught` also ends the server.',
      cure: 'Report the line to the maintainers.',
    },
  },
  'Upstreams and keys': {
    upstream_proxy: {
      cause:
        'Requests to the `upstream` go through this `proxy`. `source` is the setting or variable that names the proxy.',
      cure: 'Nothing.',
    },
    webhook_proxy: {
      cause:
        'Messages to the `webhook` go through this `proxy`. `source` is the setting or variable that names the proxy.',
      cure: 'Nothing.',
    },
    upstream_unasked: {
      cause:
        'The `upstream` sent an answer without a request. Another request may have received this answer. `place` shows where the bytes were. `before` counts further cases since the last line, because triwire logs one line a minute.',
      cure: 'See [surplus answers](providers.md#surplus-answers).',
    },
    key_renewed: { cause: 'An upstream account got a new key from its file, command or cloud.', cure: 'Nothing.' },
    key_failed: {
      cause:
        'An upstream account got no key from its file, command or cloud. `why` has the reason. If `in_use` is true, triwire still uses the previous key.',
      cure: 'See [keys](providers.md#keys).',
    },
    clock_skew: {
      cause:
        'The clock of a cloud is `ahead_ms` ahead of this machine. Signatures for the upstream account use the time of the cloud.',
      cure: 'Check the time service of this machine.',
    },
  },
  'Accounts, credit and people': {
    grant_failed: {
      cause:
        'The monthly credit of an `account` could not be added. Requests of the account still use the remaining credit.',
      cure: 'Nothing at first: triwire tries again after a second. If the event repeats, look for `ledger_trouble`.',
    },
    plan_missing: {
      cause: 'The configuration does not have the price plan of these `accounts`. They pay the prices of the models.',
      cure: 'Declare the plan under `plans` and reload, or run `triwire account set NAME --plan PLAN`.',
    },
    demo_refused: {
      cause:
        'The gateway serves real models. The account `demo` has only its first credit, which is for simulated models, so its requests get 401.',
      cure: 'Add credit to the account and reload, or use another account.',
    },
    'sign_in_failed, sign_in_code_wrong': {
      cause: 'A person could not sign in. `problem` and `cause` show why.',
      cure: 'See [sign-in](single-sign-on.md#when-it-fails).',
    },
    'webhook_failed, webhook_given_up': {
      cause:
        'A `webhook` did not accept a `warning`. `result` shows how the delivery failed. triwire tries again for a day. `webhook_given_up` means that it has stopped trying.',
      cure: 'Check the address and the server of the webhook. See [warnings](operating.md#warnings).',
    },
    webhook_dropped: {
      cause: 'A warning was dropped, because 1,000 warnings already wait in this process.',
      cure: 'Look for `webhook_failed`.',
    },
    webhooks_silent: {
      cause: 'Warnings cannot be read from the store. They stay there and are sent later.',
      cure: 'Look for `ledger_trouble`.',
    },
  },
  'Store and ledger': {
    crash_recovery: {
      cause:
        'At the start, the server found a spool file (debits that the database did not have yet) and recorded its debits.',
      cure: 'Nothing. If the line has `aside`, look at the file that it names.',
    },
    'store_unreachable, store_reached': {
      cause:
        'PostgreSQL does not answer, or answers again. Meanwhile inference requests get 500, and `/readyz` returns 503.',
      cure: 'See [scaling.md](scaling.md#what-happens-when-something-fails).',
    },
    ledger_looked_again: {
      cause:
        'A connection to PostgreSQL was lost, and triwire looked for the debits of the last 60 s. `missing` of them were not in the database, and triwire recorded them again.',
      cure: 'If `missing` is not 0, a standby without these debits took over. Check whether it also lacks added credits.',
    },
    ledger_busy: {
      cause: 'Another process has locked the database, such as a long command.',
      cure: 'Let that process end.',
    },
    'ledger_trouble, usage_trouble': {
      cause:
        'The store cannot be written or read. With PostgreSQL, `usage_trouble` reports that the figures for reports cannot be kept. Debits are still posted.',
      cure: 'Do what the message says.',
    },
    admission_trouble: {
      cause:
        'PostgreSQL does not answer when triwire asks whether a request may run. Such requests wait up to 2 s and then get 500.',
      cure: 'Check the database.',
    },
    ledger_unsettled: {
      cause:
        'Debits have waited too long for the database. New inference requests of their accounts get 500. `accounts` names up to 20 of these accounts, and `blocked_accounts` is their number.',
      cure: 'Look for a full disk and for a lock on the database ([how](operating.md#when-the-store-cannot-be-written)).',
    },
    ledger_withdrawn: {
      cause:
        'The database accepts transactions again. Before, `withdrawn` answers were broken off and not billed. `returned` names those whose debit was recorded after all, and was returned as credit.',
      cure: 'Nothing.',
    },
    ledger_form_3: {
      cause: 'The ledger got its first entry in [form 3](ledger.md#the-chain), a newer format.',
      cure: 'Nothing. From now on, releases before 0.3 cannot use the store.',
    },
    'ledger_worker_restart, ledger_lost': {
      cause:
        '`ledger_worker_restart`: the thread that writes the ledger ended and was started again. `ledger_lost`: it ended a second time, or a file of the store was removed, replaced or cut. The server then ends.',
      cure: 'Start the server, then run `triwire ledger verify`. Make sure that no program changes the files.',
    },
    ledger_mismatch: { cause: 'A balance is not the sum of its ledger entries.', cure: 'Run `triwire ledger verify`.' },
    'ledger_conflict, ledger_rejected': {
      cause: 'A debit contradicts a recorded one, or cannot be recorded. triwire has a bug.',
      cure: 'Report the line, which contains the debit, to the maintainers.',
    },
    spool_not_cleared: {
      cause: 'The debits of a spool file were recorded, but the file could not be emptied.',
      cure: 'Nothing. Each debit is recorded only once.',
    },
  },
  Clocks: {
    clock_apart: {
      cause:
        'The clock of this machine differs by more than five minutes from the `Date` header of the answers of upstreams. No request is refused for this reason.',
      cure: 'Check the time service of this machine.',
    },
    clock_differs: {
      cause:
        'The clock of this machine is `ahead_s` seconds ahead of the clock of the PostgreSQL store, or behind it if the number is negative. The difference is more than 5 s. This machine decides when keys and tokens expire.',
      cure: 'Check both time services.',
    },
    clock_agrees: {
      cause: 'The clock is no longer apart from the clock of the upstreams or of the store. `with` says which.',
      cure: 'Nothing.',
    },
    'clock_wrong, clock_right': {
      cause:
        '`clock_wrong`: the clock that dates ledger entries may be wrong. `problem` is `moved` or `rest`, or is `ahead` if the newest entry has a later time than the clock. `shows` is the time of the clock, and `newest` the time of that entry. `clock_right`: the problem is over.',
      cure: 'See [when the clock is wrong](operating.md#when-the-clock-is-wrong).',
    },
  },
  'Machine, log and telemetry': {
    descriptors_few: {
      cause: '`connections_max` connections need more open files than the limit of the process allows.',
      cure: 'Raise `LimitNOFILE`, or lower `connections_max`.',
    },
    'descriptors_exhausted, descriptors_back': {
      cause:
        'The process has reached its limit of open files. New connections of clients are closed immediately, and connections to upstreams fail. `descriptors_back` says how long this lasted (`for_ms`).',
      cure: 'Raise `LimitNOFILE`.',
    },
    telemetry_lost: {
      cause:
        'Traces or metrics could not be sent to the collector. `why` has the reason, and `lost` the number of lost items of this `signal`. Logged at most once a minute.',
      cure: 'Check the collector and its address.',
    },
    log_dropped: {
      cause:
        '`lines` log lines are lost, because the reader of stderr was too slow, the pipe was closed, or the disk was full.',
      cure: 'Read stderr faster, or free disk space.',
    },
  },
}
