import { z } from 'zod'
import { BookError } from '../accounts/book-error.ts'
import { type IssuedKey, type KeyRow, versionOfKey } from '../accounts/book-rows.ts'
import type { Books } from '../accounts/books.ts'
import { nameOfKey } from '../accounts/keys.ts'
import * as field from './fields.ts'
import { operation, page } from './operation.ts'

const keyShape = z.object({
  id: z.string(),
  prefix: z.string().describe('its first characters'),
  label: z.string().nullable(),
  account: z.string(),
  created: field.when,
  expires: field.when.nullable(),
  revoked: field.when.nullable(),
  last_used: field.when.nullable(),
})

const issuedShape = z.object({
  key: z.string().optional().describe('the key itself, this once; a repeated request is not shown it again'),
  id: z.string(),
  prefix: z.string(),
})

function tellKey({ id, prefix, label, accountId, createdMs, expiresMs, revokedMs, lastUsedMs }: KeyRow) {
  return {
    id,
    prefix,
    label: label ?? null,
    account: accountId,
    created: field.formatTime(createdMs)!,
    expires: field.formatTime(expiresMs),
    revoked: field.formatTime(revokedMs),
    last_used: field.formatTime(lastUsedMs),
  }
}

const one = (row: KeyRow) => ({ body: tellKey(row), version: versionOfKey(row) })

const issued = ({ key, id, prefix }: IssuedKey) => ({
  body: { ...(key !== undefined && { key }), id, prefix },
  isNew: key !== undefined,
})

const label = field.text('must be a text').describe('what people call it; its successors keep it')

export const keyOperations = [
  operation({
    id: 'key.create',
    method: 'POST',
    path: '/accounts/{account}/keys',
    role: 'admin',
    kind: 'creates',
    input: z.strictObject({ account: field.account, label: label.optional() }),
    output: issuedShape,
    problems: ['not_found'],
    text: 'make a key; it is shown this once',
    cli: [{ command: 'key create', arguments: ['account'], options: { label: '--label <text>' } }],
    run: async ({ books }, { account, label }) => issued(await books.createKey(account, { label })),
  }),
  operation({
    id: 'key.list',
    method: 'GET',
    path: '/keys',
    role: 'viewer',
    kind: 'list',
    input: z.strictObject({
      account: field.account.optional(),
      q: z
        .string()
        .min(1)
        .max(100)
        .optional()
        .describe('only those with this in their label, or at the start of their characters or id'),
      ...field.paging,
    }),
    output: keyShape,
    problems: ['cursor_invalid'],
    text: 'list keys by their first characters',
    cli: [{ command: 'key list', arguments: ['account?'], options: { q: '--search <text>' }, rows: 'all' }],
    async run({ books, beyond }, { account, q, limit }) {
      const accountId = account === undefined ? undefined : (await books.findAccount(account)).id
      const rows = await books.pageKeys({ accountId, q, beyond, limit: limit + 1 })
      return page(rows, limit, tellKey, (row) => [row.createdMs, row.id])
    },
  }),
  operation({
    id: 'key.show',
    method: 'GET',
    path: '/keys/{key}',
    role: 'viewer',
    kind: 'one',
    input: z.strictObject({ key: field.key }),
    output: keyShape,
    problems: ['not_found'],
    text: 'show a key, by id or first characters',
    cli: [{ command: 'key show', arguments: ['key'] }],
    run: async ({ books }, { key }) => one(await findKey(books, key)),
  }),
  operation({
    id: 'key.update',
    method: 'PATCH',
    path: '/keys/{key}',
    role: 'admin',
    kind: 'edits',
    input: z.strictObject({
      key: field.key,
      label: label.nullable().describe('what people call it; null takes it away'),
    }),
    output: keyShape,
    problems: ['not_found'],
    text: 'give a key another label',
    cli: [{ command: 'key set', arguments: ['key'], options: { label: '--label <text>' } }],
    run: async ({ books }, { key, label }) => one(await books.updateKey(key, { label })),
  }),
  operation({
    id: 'key.revoke',
    method: 'POST',
    path: '/keys/{key}/revoke',
    role: 'admin',
    kind: 'one',
    input: z.strictObject({ key: field.key }),
    output: keyShape,
    problems: ['not_found'],
    text: 'end a key for good, by id or first characters',
    cli: [{ command: 'key revoke', arguments: ['key'] }],
    run: async ({ books }, { key }) => one(await books.revokeKey(key)),
  }),
  operation({
    id: 'key.rotate',
    method: 'POST',
    path: '/keys/{key}/rotate',
    role: 'admin',
    kind: 'creates',
    input: z.strictObject({
      key: field.key,
      grace: field.duration.prefault('24h').describe('how long the old key lives on, such as 90s, 30m, 24h or 7d'),
    }),
    output: issuedShape,
    problems: ['not_found', 'conflict'],
    text: 'make a new key for the same account; the old one ends after a grace',
    cli: [{ command: 'key rotate', arguments: ['key'], options: { grace: '--grace <time>' } }],
    run: async ({ books }, { key, grace }) => issued(await books.rotateKey(key, grace)),
  }),
]

/** By id or first characters, never by its label. */
async function findKey(books: Books, key: string): Promise<KeyRow> {
  const name = nameOfKey(key)
  const found = (await books.findKeys(name)).filter(({ id, prefix }) => id === name || prefix === name)
  if (found.length > 1) throw new BookError('key_ambiguous', key)
  if (!found[0]) throw new BookError('no_key', key)
  return found[0]
}
