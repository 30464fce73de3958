import type { WireName } from '../catalog/model.ts'
import { chat } from './chat/index.ts'
import { messages } from './messages/index.ts'
import { responses } from './responses/index.ts'
import type { Wire } from './wire.ts'

/** The wires that are spoken, by clients and by models. */
export const wires: Readonly<Record<WireName, Wire>> = { messages, chat, responses }
