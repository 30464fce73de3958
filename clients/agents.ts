import type { WireName } from '../src/catalog/model.ts'

/** A call of one of an agent's own tools, as a model would make it. */
export type ToolCall = { name: string; arguments: Record<string, unknown> }

/** An agent that people run in a terminal: how it is driven without one, and what its tools are called. */
export type Agent = {
  /** As `triwire setup` names it. */
  client: string
  /** As package.json pins it. */
  package: string
  bin: string
  /** One task, all permissions, no questions. */
  args(task: string, model: string): string[]
  /** Nobody is phoned home. What a person need not set to use the gateway stands here and not in the setup. */
  env: Readonly<Record<string, string>>
  wires: readonly WireName[]
  tools: {
    write(path: string, content: string): ToolCall
    run(command: string): ToolCall
    read(path: string): ToolCall
  }
  /** The wires on which it names its conversation, by itself or as its setup tells it, so that every turn carries a key. */
  keyed: readonly WireName[]
  /** The wires on which it asks for reasoning with a model it does not know. */
  reasons: readonly WireName[]
}

const everyWire = ['messages', 'chat', 'responses'] as const

export const agents: readonly Agent[] = [
  {
    client: 'claude-code',
    package: '@anthropic-ai/claude-code',
    bin: 'claude',
    args: (task) => ['-p', task, '--allowedTools', 'Bash,Write,Read'],
    env: { DISABLE_AUTOUPDATER: '1', DISABLE_TELEMETRY: '1' },
    wires: ['messages'],
    tools: {
      write: (file_path, content) => ({ name: 'Write', arguments: { file_path, content } }),
      run: (command) => ({ name: 'Bash', arguments: { command, description: 'Run it' } }),
      read: (file_path) => ({ name: 'Read', arguments: { file_path } }),
    },
    keyed: ['messages'],
    reasons: ['messages'],
  },
  {
    client: 'codex',
    package: '@openai/codex',
    bin: 'codex',
    args: (task) => {
      const effort = ['-c', 'model_reasoning_effort="medium"']
      return ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', ...effort, task]
    },
    env: {},
    wires: ['responses'],
    tools: {
      // It has one tool for all three with a model it does not know.
      write: (path, content) => ({ name: 'exec_command', arguments: { cmd: `printf '%s' '${content}' > '${path}'` } }),
      run: (cmd) => ({ name: 'exec_command', arguments: { cmd } }),
      read: (path) => ({ name: 'exec_command', arguments: { cmd: `cat '${path}'` } }),
    },
    keyed: ['responses'],
    reasons: ['responses'],
  },
  {
    client: 'opencode',
    package: 'opencode-ai',
    bin: 'opencode',
    args: (task) => ['run', '--auto', '--variant', 'high', task],
    env: { OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_LSP_DOWNLOAD: '1' },
    wires: everyWire,
    tools: {
      write: (filePath, content) => ({ name: 'write', arguments: { filePath, content } }),
      run: (command) => ({ name: 'bash', arguments: { command, description: 'Run it' } }),
      read: (filePath) => ({ name: 'read', arguments: { filePath } }),
    },
    keyed: everyWire,
    reasons: everyWire,
  },
  {
    client: 'qwen-code',
    package: '@qwen-code/qwen-code',
    bin: 'qwen',
    args: (task) => ['--yolo', task],
    env: { QWEN_TELEMETRY_ENABLED: '0', QWEN_USAGE_STATISTICS_ENABLED: '0' },
    wires: everyWire,
    tools: {
      write: (file_path, content) => ({ name: 'write_file', arguments: { file_path, content } }),
      run: (command) => ({ name: 'run_shell_command', arguments: { command, is_background: false } }),
      read: (file_path) => ({ name: 'read_file', arguments: { file_path } }),
    },
    keyed: everyWire,
    reasons: ['messages'],
  },
  {
    client: 'pi',
    package: '@mariozechner/pi-coding-agent',
    bin: 'pi',
    args: (task, model) => ['--provider', 'triwire', '--model', model, '--thinking', 'medium', '-p', task],
    env: { PI_OFFLINE: '1', PI_TELEMETRY: '0' },
    wires: everyWire,
    tools: {
      write: (path, content) => ({ name: 'write', arguments: { path, content } }),
      run: (command) => ({ name: 'bash', arguments: { command } }),
      read: (path) => ({ name: 'read', arguments: { path } }),
    },
    keyed: everyWire,
    reasons: everyWire,
  },
  {
    client: 'copilot',
    package: '@github/copilot',
    bin: 'copilot',
    args: (task) => ['-p', task, '--allow-all', '--reasoning-effort', 'high'],
    env: { COPILOT_AUTO_UPDATE: 'false' },
    wires: everyWire,
    tools: {
      write: (path, file_text) => ({ name: 'create', arguments: { path, file_text } }),
      run: (command) => ({ name: 'bash', arguments: { command, description: 'Run it' } }),
      read: (path) => ({ name: 'view', arguments: { path } }),
    },
    keyed: everyWire,
    reasons: everyWire,
  },
]
