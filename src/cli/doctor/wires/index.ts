import type { WireName } from '../../../catalog/model.ts'
import type { ClientWire } from '../client-wire.ts'
import { chat } from './chat.ts'
import { messages } from './messages.ts'
import { responses } from './responses.ts'

export const clientWires: Readonly<Record<WireName, ClientWire>> = { messages, chat, responses }
