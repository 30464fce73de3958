import assert from 'node:assert/strict'
import test from 'node:test'
import { withoutPostgres } from '../support/postgres.ts'
import { clusterOfFile } from './cluster.ts'
import * as laws from './laws.ts'

/*
 * The laws are tried themselves: each of these faults must break the law beside it. "Exactly 300 of 1,000" alone does not
 * notice that the lock is missing.
 */

const cluster = clusterOfFile()

/** Some faults show only where calls overlap: on a busy machine they may not once, but hardly so often. */
const tries = 5
const skip = withoutPostgres()

const lock = 'FOR i IN 1 .. n LOOP PERFORM pg_advisory_xact_lock(hashtextextended(scopes[i], 7)); END LOOP;'
/** Slowly, so that another who goes the other way comes to meet it. */
const lockIn = (order: string) => lock.replace('1 .. n', order).replace('; END', '; PERFORM pg_sleep(0.002); END')
const others = 'CASE WHEN (p.seen_ms > t - lease_ms AND p.seen_ms <= t + lease_ms) THEN s.held ELSE 0 END AS held'

const faults: [what: string, law: laws.Law, fault: laws.Fault][] = [
  ['no lock, seen by the window', laws.exactWindow, { edits: [[lock, '']] }],
  ['no lock, seen by the overdraft', laws.boundedOverdraft, { edits: [[lock, '']] }],
  [
    'figures of its own that the database adds up, and not the replica',
    laws.lostAnswers,
    {
      edits: [
        [
          'CONTINUE;\n      END IF;\n      held_by',
          'helds[i] := share.held; takens[i] := share.taken; CONTINUE;\n      END IF;\n      held_by',
        ],
      ],
    },
  ],
  ['a hold that goes before its debit is there', laws.boundedOverdraft, { releasesFirst: true }],
  [
    'locks in an order of their own',
    laws.noDeadlock,
    {
      edits: [
        [
          lock,
          `${lockIn('1 .. CASE WHEN me % 2 = 0 THEN n ELSE 0 END')} ${lockIn('REVERSE CASE WHEN me % 2 = 1 THEN n ELSE 0 END .. 1')}`,
        ],
      ],
    },
  ],
  [
    'functions that are STABLE',
    laws.exactWindow,
    { patienceMs: 500, edits: [['RETURNS text LANGUAGE plpgsql VOLATILE', 'RETURNS text LANGUAGE plpgsql STABLE']] },
  ],
  [
    'no epoch',
    laws.emptiedWhileHeld,
    { edits: [["IF FOUND THEN RAISE EXCEPTION 'others have not told yet'", "IF false THEN RAISE EXCEPTION 'others'"]] },
  ],
  [
    'the clock of the replica',
    laws.oneClock,
    {
      edits: [
        ['t := triwire.now_ms();', 't := triwire.now_ms() + (me % 3 - 1) * 3600000;'],
        ['bigint := triwire.now_ms();', 'bigint := triwire.now_ms() + (me % 3 - 1) * 3600000;'],
      ],
    },
  ],
  [
    'sessions that are repeatable read, seen by the window',
    laws.exactWindow,
    { settings: { default_transaction_isolation: 'repeatable\\ read' } },
  ],
  [
    'sessions that are repeatable read, seen by the overdraft',
    laws.boundedOverdraft,
    { settings: { default_transaction_isolation: 'repeatable\\ read' } },
  ],
  ['holds of others that do not count', laws.boundedOverdraft, { edits: [[others, '0 AS held']] }],
  ['a late call that is believed', laws.lateCall, { edits: [['IF share.turn >= call_turn THEN', 'IF false THEN']] }],
  [
    'what is not told when the database has forgotten',
    laws.emptiedInWindow,
    {
      edits: [
        ['SELECT o.scope, me, call_turn, o.held, o.window_ms, o.taken', 'SELECT o.scope, me, call_turn, 0, 0, 0'],
      ],
    },
  ],
]

for (const [index, [what, law, fault]] of faults.entries()) {
  test(`X7: the laws detect ${what}`, { skip }, async () => {
    await assert.rejects(async () => {
      for (let n = 0; n < tries; n++) await law(cluster(), `mutation-${index}-${n}`, fault)
    }, assert.AssertionError)
  })
}
