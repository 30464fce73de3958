import type { ClientWire, ModelWire } from '../catalog/wire-names.ts'
import { chat } from './chat/index.ts'
import { messages } from './messages/index.ts'
import { responses } from './responses/index.ts'
import type { SharedWire, Wire } from './wire.ts'

const shared: Readonly<Record<ClientWire, SharedWire>> = { messages, chat, responses }

/** The wires that clients speak. */
export const clientWires: readonly SharedWire[] = Object.values(shared)

/** All wires, including those that only models use. */
export const wires: typeof shared & Readonly<Record<Exclude<ModelWire, ClientWire>, Wire>> = { ...shared }
