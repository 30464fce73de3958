import type { ClientWire } from '../../src/catalog/wire-names.ts'
import type { Source } from '../installs.ts'

/** A call of one of an agent's own tools, as a model would make it. */
export type ToolCall = { name: string; arguments: Record<string, unknown> }

/** The ways in which the scripted model fails once before it answers. */
export const failureNames = ['429', '529', '500', 'cut in text', 'cut in a call'] as const
export type FailureName = (typeof failureNames)[number]

/**
 * An agent that people run in a terminal or from a program: the command that runs it without questions, and its tools.
 */
export type Agent = {
  client: string
  /** Its name in `triwire setup`, if that is not `client`. */
  setup?: string
  source: Source
  /** For an agent that is a library: our program that calls it. The `bin` of `source` is then the interpreter. */
  file?: string
  /** Returns the arguments that run one task with all permissions and without questions. */
  args(task: string, model: string, wire: ClientWire): string[]
  /** Variables that the gateway does not need, so `triwire setup` does not print them: most switch off telemetry. */
  env: Readonly<Record<string, string>>
  wires: readonly ClientWire[]
  tools: {
    write(path: string, content: string): ToolCall
    run(command: string): ToolCall
    read(path: string): ToolCall
    /** The tool call that ends a task, for an agent that does not end with a text alone. */
    done?(text: string): ToolCall
  }
  /** For an agent without tools, which writes the files that stand in an answer: formats a file for such an answer. */
  edit?(path: string, content: string): string
  /** The wires on which every request has a conversation key, which the agent sends by itself or by its setup. */
  keyed: readonly ClientWire[]
  /** The wires on which it asks for reasoning even if it does not know the model. */
  reasons: readonly ClientWire[]
  /** The wires on which it asks for JSON answers. On all others it asks for streams. */
  whole?: readonly ClientWire[]
  /** Whether it runs a tool call that was cut, as it also does without the gateway. */
  runsHalfCalls?: boolean
  /** The failures after which it gives up, by wire. It also does so without the gateway. */
  givesUp?: Partial<Record<ClientWire, readonly FailureName[]>>
}

export const everyWire = ['messages', 'chat', 'responses'] as const
