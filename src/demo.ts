import { parseCredits } from './accounts/credit.ts'
import type { Store } from './store/sqlite/store.ts'

const demoAccount = 'demo'
const demoCredit = '10'

/**
 * What a first start says: a demo account with credit, its key, shown this once, and a call on each wire that works when
 * pasted. Only an empty store gets one; a later start says how to make a key.
 */
export function createDemo(store: Store, base: string, isEmpty: boolean): string {
  if (!isEmpty) {
    return 'The built-in simulator answers for the models sim-messages, sim-chat and sim-responses.\nMake a key: npm exec -- triwire key create demo   (accounts: npm exec -- triwire account list)'
  }
  store.createAccount(demoAccount, parseCredits(demoCredit))
  const { key } = store.createKey(demoAccount)
  return [
    'No configuration names a model, so the built-in simulator answers: sim-messages, sim-chat, sim-responses.',
    `A demo account with ${demoCredit} credits was made. Its key is shown this once:`,
    '',
    `  ${key}`,
    '',
    'Try it, one call on each wire:',
    '',
    curl(`${base}/v1/messages`, key, {
      model: 'sim-messages',
      max_tokens: 200,
      messages: [{ role: 'user', content: 'Hello!' }],
    }),
    curl(`${base}/v1/chat/completions`, key, { model: 'sim-chat', messages: [{ role: 'user', content: 'Hello!' }] }),
    curl(`${base}/v1/responses`, key, { model: 'sim-responses', input: 'Hello!' }),
  ].join('\n')
}

function curl(url: string, key: string, body: object): string {
  return `curl -s ${url} -H 'authorization: Bearer ${key}' -H 'content-type: application/json' -d '${JSON.stringify(body)}'`
}
