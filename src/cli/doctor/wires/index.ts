import type { ClientWire } from '../../../catalog/wire-names.ts'
import type { ProbedWire } from '../client-wire.ts'
import { chat } from './chat.ts'
import { messages } from './messages.ts'
import { responses } from './responses.ts'

export const probedWires: Readonly<Record<ClientWire, ProbedWire>> = { messages, chat, responses }
