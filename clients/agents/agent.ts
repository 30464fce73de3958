import type { ClientWire } from '../../src/catalog/wire-names.ts'
import type { Source } from '../installs.ts'

/** A call of one of an agent's own tools, as a model would make it. */
export type ToolCall = { name: string; arguments: Record<string, unknown> }

/** What a model does wrong once before it answers. */
export const failureNames = ['429', '529', '500', 'cut in text', 'cut in a call'] as const
export type FailureName = (typeof failureNames)[number]

/** An agent that people run in a terminal or a program: how it is driven without one, and what its tools are called. */
export type Agent = {
  client: string
  /** As `triwire setup` names it, where that is another name. */
  setup?: string
  source: Source
  /** What runs it is its interpreter, with this program of ours: it is a library. */
  file?: string
  /** One task, all permissions, no questions. */
  args(task: string, model: string, wire: ClientWire): string[]
  /** Nobody is phoned home. What a person need not set to use the gateway stands here and not in the setup. */
  env: Readonly<Record<string, string>>
  wires: readonly ClientWire[]
  tools: {
    write(path: string, content: string): ToolCall
    run(command: string): ToolCall
    read(path: string): ToolCall
    /** How it is told that the task is done, where a text is not enough. */
    done?(text: string): ToolCall
  }
  /** It calls no tools: it makes what it is told of a text, and does the task in one turn. How a file stands in it. */
  edit?(path: string, content: string): string
  /** The wires on which it names its conversation, by itself or as its setup tells it, so that every turn carries a key. */
  keyed: readonly ClientWire[]
  /** The wires on which it asks for reasoning with a model it does not know. */
  reasons: readonly ClientWire[]
  /** It streams, unless this says on which wires it does not. */
  whole?: readonly ClientWire[]
  /** It does one call of several at a time. */
  isSerial?: boolean
  /** The answer is in its output, unless it shows none. */
  isSilent?: boolean
  /** It runs a call that was cut, also straight at the model. */
  runsHalfCalls?: boolean
  /** After these it gives up, also straight at the model, by wire. */
  givesUp?: Partial<Record<ClientWire, readonly FailureName[]>>
}

export const everyWire = ['messages', 'chat', 'responses'] as const
