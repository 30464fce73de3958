import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { HttpExchange } from '../../src/http/http-exchange.ts'

/** Watches the exchanges of this process's servers. `newest` returns the last one that has begun since then. */
export function watchExchanges(): { newest(): HttpExchange | undefined; close(): void } {
  let newest: HttpExchange | undefined
  const listen = (message: unknown) => {
    newest = message as HttpExchange
  }
  subscribe('triwire:http:exchange', listen)
  return { newest: () => newest, close: () => unsubscribe('triwire:http:exchange', listen) }
}
