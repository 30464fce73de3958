import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { HttpExchange } from '../../src/http/http-exchange.ts'

/** Watches exchanges; `newest` is the last one that a server of this process has begun since. */
export function watchExchanges(): { newest(): HttpExchange | undefined; close(): void } {
  let newest: HttpExchange | undefined
  const listen = (message: unknown) => {
    newest = message as HttpExchange
  }
  subscribe('triwire:http:exchange', listen)
  return { newest: () => newest, close: () => unsubscribe('triwire:http:exchange', listen) }
}
