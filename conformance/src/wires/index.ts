import type { Wire } from '../case.ts'
import { chat } from './chat.ts'
import { messages } from './messages.ts'
import { responses } from './responses.ts'
import type { ClientWire } from './wire.ts'

export const clientWires: Readonly<Record<Wire, ClientWire>> = { chat, responses, messages }
