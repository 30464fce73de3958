import type { Row } from './errors.ts'

/** Every event of the process in the log, by subject. Events of one row are separated by commas. */
export const logEvents: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
  'Start, reload and end': {
    'listening, stopping, drain, stopped, config_reloaded': {
      cause: 'The server began, ends, or has read its configuration again.',
      cure: 'Nothing.',
    },
    drain_cut: { cause: 'Streams were cut at the deadline.', cure: 'Raise `drain_deadline` if that is too soon.' },
    restart_needed: {
      cause: '`keys` of the file have changed that a reload leaves as they were.',
      cure: 'Restart when you can.',
    },
    config_rejected: {
      cause: 'The file has a mistake; the old one is in force.',
      cure: 'Correct the file, or put the old one back. `triwire check` names the lines.',
    },
    config_warning: {
      cause: 'The configuration has a setting that is allowed and probably not meant.',
      cure: 'Read the line. `triwire check` lists all of them.',
    },
    config_differs: {
      cause: 'These `replicas` run with another configuration.',
      cure: 'Reload those that lag behind.',
    },
    worker_exited: {
      cause: 'One of `--workers` died and is replaced; its requests were cut.',
      cure: 'Look for `uncaught` before it.',
    },
    worker_waits: {
      cause:
        'A dead worker is not replaced yet: the file is invalid (`error`), or changes `keys` that need a restart of all.',
      cure: 'Correct the file, or restart.',
    },
    workers_unsupported: {
      cause: 'This system cannot share a port between processes.',
      cure: 'One process serves; run replicas instead.',
    },
    'bug, uncaught': { cause: 'A fault of triwire. The second one ends the server.', cure: 'Report the line.' },
  },
  'Upstreams and keys': {
    upstream_proxy: {
      cause: 'The `upstream` is asked through this `proxy`, because `source` says so.',
      cure: 'Nothing.',
    },
    upstream_unasked: {
      cause:
        'The `upstream` sent data that no request had asked for, and another request may have been given it. `place` says where. Logged once a minute; `before` counts events since the last line.',
      cure: 'See [surplus answers](providers.md#surplus-answers).',
    },
    key_renewed: { cause: 'An account has another key from its file, command or cloud.', cure: 'Nothing.' },
    key_failed: {
      cause:
        'The file, command or cloud of an account gives no key: `why`. `in_use` says whether it has the key from before.',
      cure: 'See [keys](providers.md#keys).',
    },
    clock_skew: {
      cause: 'The clock of a cloud is `ahead_ms` ahead of this machine, and signatures of the `account` go by it.',
      cure: 'Check the time service of this machine.',
    },
  },
  'Accounts, credit and people': {
    grant_failed: {
      cause: 'The monthly grant of an `account` could not be posted. Its requests go on with the credit that is there.',
      cure: 'It is tried again after a second. If it repeats, see `ledger_trouble`.',
    },
    plan_missing: {
      cause: 'The configuration lacks the plan of these `accounts`, which pay the prices of models.',
      cure: 'Declare it under `plans` and reload, or `triwire account set NAME --plan PLAN`.',
    },
    demo_refused: {
      cause:
        'Real models are served, and the account `demo` has only the credit of a first start: its requests are 401.',
      cure: 'Give it credit and reload, or use another account.',
    },
    'sign_in_failed, sign_in_code_wrong': {
      cause: 'A person could not sign in: `problem` and `cause` say why.',
      cure: 'See [sign-in](single-sign-on.md#when-it-fails).',
    },
    'webhook_failed, webhook_given_up': {
      cause:
        'A `webhook` did not take a `warning`: `result` says how it failed. It is sent again for a day, then given up.',
      cure: 'Check its address and its server. See [warnings](operating.md#warnings).',
    },
    webhook_dropped: { cause: 'More than 1,000 warnings wait in this process.', cure: 'Look at `webhook_failed`.' },
    webhooks_silent: {
      cause: 'The store cannot be asked for warnings; they stay there.',
      cure: 'See `ledger_trouble`.',
    },
  },
  'Store and ledger': {
    crash_recovery: { cause: 'A spool was posted at the start.', cure: 'Nothing; with `aside`, look at that file.' },
    'store_unreachable, store_reached': {
      cause: 'PostgreSQL does not answer, or answers again. Meanwhile inference is 500, and `/readyz` 503.',
      cure: 'See [scaling.md](scaling.md#what-happens-when-something-fails).',
    },
    ledger_looked_again: {
      cause:
        'A connection to PostgreSQL was lost, and the debits of the last 60 s were looked for. `missing` of them were not there, and were posted again.',
      cure: 'If it is not 0, a standby without them took over: it may lack credits too.',
    },
    ledger_busy: { cause: 'Another process holds the database, a long command for instance.', cure: 'Let it end.' },
    ledger_trouble: { cause: 'The store fails.', cure: 'The message has the cure.' },
    admission_trouble: {
      cause: 'PostgreSQL does not say whether requests may run. They wait up to 2 s and are then 500.',
      cure: 'Look at the database.',
    },
    ledger_unsettled: {
      cause:
        'Debits are overdue, and new inference of their accounts is refused: `accounts` names up to 20, `blocked_accounts` counts all.',
      cure: 'Look at the disk, and for a lock on the database ([how](operating.md#when-the-store-cannot-be-written)).',
    },
    ledger_withdrawn: {
      cause:
        'Debits had been refused to their clients, and a commit works again. The line has their number. `returned` names those that the database had and that were given back.',
      cure: 'Nothing.',
    },
    ledger_form_3: {
      cause: 'The first entry of [form 3](ledger.md#the-chain) is in the ledger.',
      cure: 'Nothing. No older triwire can use the store from now on.',
    },
    'ledger_worker_restart, ledger_lost': {
      cause:
        "The ledger's thread died; the second time, the server ends. Or a file of the store was removed, replaced or cut, which ends the server at once.",
      cure: 'Restart, then `triwire ledger verify`. Let no program touch the files.',
    },
    ledger_mismatch: { cause: 'A balance is not the sum of its entries.', cure: 'Run `triwire ledger verify`.' },
    'ledger_conflict, ledger_rejected': {
      cause: 'A debit contradicts one on record, or cannot be held. This is a fault of triwire.',
      cure: 'Report it; the line has the debit.',
    },
    spool_not_cleared: {
      cause: 'A spool that was posted could not be emptied.',
      cure: 'Nothing: its debits are posted once.',
    },
  },
  Clocks: {
    clock_apart: {
      cause:
        "This machine's clock is more than five minutes from the `Date` of upstream answers. Nothing is refused for it.",
      cure: 'Check the time service of the machine.',
    },
    clock_differs: {
      cause:
        "This machine's clock is more than 5 s from that of the PostgreSQL store, by `ahead_s`. Ends of keys and tokens are judged by this machine's clock.",
      cure: 'Check both time services.',
    },
    clock_agrees: { cause: 'One of the two is over: `with` is `upstreams` or `store`.', cure: 'Nothing.' },
    'clock_wrong, clock_right': {
      cause:
        'The clock that dates entries is in doubt (`moved`, `rest`), or earlier than the newest entry (`ahead`). `shows` is its time, `newest` that of the entry.',
      cure: 'See [when the clock is wrong](operating.md#when-the-clock-is-wrong).',
    },
  },
  'Machine, log and telemetry': {
    descriptors_few: {
      cause: 'The limit of open files is below what `connections_max` may take.',
      cure: 'Raise `LimitNOFILE`, or lower the other.',
    },
    'descriptors_exhausted, descriptors_back': {
      cause:
        'The limit of open files is reached: new connections are closed at once, and those to upstreams fail. The second event has how long it was.',
      cure: 'Raise `LimitNOFILE`.',
    },
    telemetry_lost: {
      cause:
        'Spans or metrics could not be sent to the collector: `why`, and how many of which `signal`. Logged once a minute.',
      cure: 'Check the collector and its address.',
    },
    log_dropped: {
      cause: 'So many `lines` are missing: a slow sink, a full disk, or a pipe that nobody read.',
      cure: 'Read stderr faster, or free the disk.',
    },
  },
}
