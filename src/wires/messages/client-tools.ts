import type { RawJson } from '../../bytes/json.ts'

/**
 * Tools that this wire's vendor defines and the client runs. Their names and inputs are fixed and public, so they are
 * translated to functions for models of other wires (A8). Tools that the provider runs, and tools that control a
 * screen, are not listed.
 */
type ClientTool = { name: string; description: string; schema: RawJson }

const text = (description: string) => ({ type: 'string', description })
const line = (description: string) => ({ type: 'integer', description })

const path = text('The path of the file or folder.')
const editing = {
  path,
  file_text: text('create: the text of the new file.'),
  old_str: text('str_replace: the text that is replaced; it must be in the file exactly once.'),
  new_str: text('str_replace: the text that takes its place.'),
  insert_line: line('insert: the line behind which the text goes; 0 is the beginning.'),
  insert_text: text('insert: the text.'),
  view_range: {
    type: 'array',
    items: { type: 'integer' },
    description: 'view: the first and the last line to show; -1 is the end of the file.',
  },
}

function commands(names: string[], properties: object, required: string[]): RawJson {
  const command = { type: 'string', enum: names, description: 'What is to be done.' }
  return sourceOf({ type: 'object', properties: { command, ...properties }, required: ['command', ...required] })
}

function sourceOf(schema: object): RawJson {
  return { source: JSON.stringify(schema) }
}

const bash: ClientTool = {
  name: 'bash',
  description: 'Runs a command in a shell that keeps its state from one call to the next.',
  schema: sourceOf({
    type: 'object',
    properties: {
      command: text('The command. Not needed to restart.'),
      restart: { type: 'boolean', description: 'True: the shell is started anew.' },
    },
  }),
}

const edits = ['view', 'create', 'str_replace', 'insert']

/** Makes an editor tool. @param renamed whether the command `insert` takes its text in `new_str`, as in old versions */
function editor(name: string, more: string[], renamed: boolean): ClientTool {
  const { insert_text, ...others } = editing
  const properties = renamed ? { ...others, new_str: text('str_replace and insert: the new text.') } : editing
  return {
    name,
    description: 'Shows, creates and changes text files.',
    schema: commands([...edits, ...more], properties, ['path']),
  }
}

const memory: ClientTool = {
  name: 'memory',
  description: 'Keeps notes in files below /memories, from one conversation to the next.',
  schema: commands(
    [...edits, 'delete', 'rename'],
    { ...editing, old_path: text('rename: the path now.'), new_path: text('rename: the new path.') },
    [],
  ),
}

const tools: Readonly<Record<string, ClientTool>> = {
  bash_20241022: bash,
  bash_20250124: bash,
  text_editor_20241022: editor('str_replace_editor', ['undo_edit'], true),
  text_editor_20250124: editor('str_replace_editor', ['undo_edit'], true),
  text_editor_20250429: editor('str_replace_based_edit_tool', [], true),
  text_editor_20250728: editor('str_replace_based_edit_tool', [], false),
  memory_20250818: memory,
}

/** The tool of this type; undefined for any other type. */
export function findClientTool(type: unknown): ClientTool | undefined {
  return typeof type === 'string' && Object.hasOwn(tools, type) ? tools[type] : undefined
}
