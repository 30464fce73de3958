import { type Agent, everyWire } from './agent.ts'

const cuts = ['cut in text', 'cut in a call'] as const

const terminal: readonly Agent[] = [
  {
    client: 'claude-code',
    source: {
      from: 'npm',
      package: '@anthropic-ai/claude-code',
      bin: 'claude',
      native: '@anthropic-ai/claude-code-{}/claude',
    },
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
    source: { from: 'npm', package: '@openai/codex', bin: 'codex' },
    args: (task) => {
      const effort = ['-c', 'model_reasoning_effort="medium"']
      return ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', ...effort, task]
    },
    env: {},
    wires: ['responses'],
    tools: {
      // For a model that it does not know, Codex has one tool for all three.
      write: (path, content) => ({ name: 'exec_command', arguments: { cmd: `printf '%s' '${content}' > '${path}'` } }),
      run: (cmd) => ({ name: 'exec_command', arguments: { cmd } }),
      read: (path) => ({ name: 'exec_command', arguments: { cmd: `cat '${path}'` } }),
    },
    keyed: ['responses'],
    reasons: ['responses'],
    // On its own wire, Codex sends back the reasoning of the call that was cut, and the model refuses that.
    givesUp: { responses: ['cut in a call'] },
  },
  {
    client: 'opencode',
    source: { from: 'npm', package: 'opencode-ai', bin: 'opencode', native: 'opencode-{}/bin/opencode' },
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
    source: { from: 'npm', package: '@qwen-code/qwen-code', bin: 'qwen' },
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
    // Qwen Code ends its run with the error of `response.failed`.
    givesUp: { responses: ['cut in text'] },
  },
  {
    client: 'pi',
    source: { from: 'npm', package: '@mariozechner/pi-coding-agent', bin: 'pi' },
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
    source: { from: 'npm', package: '@github/copilot', bin: 'copilot' },
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
  {
    client: 'droid',
    source: { from: 'npm', package: 'droid', bin: 'droid', native: '@factory/cli-{}/bin/droid' },
    args: (task) => ['exec', '-m', 'custom:triwire-0', '--skip-permissions-unsafe', task],
    env: { FACTORY_DISABLE_TELEMETRY: '1' },
    wires: everyWire,
    tools: {
      write: (file_path, content) => ({ name: 'Create', arguments: { file_path, content } }),
      run: (command) => ({ name: 'Execute', arguments: { command } }),
      read: (file_path) => ({ name: 'Read', arguments: { file_path } }),
    },
    keyed: [],
    reasons: [],
  },
  {
    client: 'kilo',
    source: { from: 'npm', package: '@kilocode/cli', bin: 'kilo', native: '@kilocode/cli-{}/bin/kilo' },
    args: (task) => ['run', '--auto', '--variant', 'high', task],
    env: { KILO_DISABLE_AUTOUPDATE: '1', KILO_DISABLE_MODELS_FETCH: '1', KILO_DISABLE_LSP_DOWNLOAD: '1' },
    wires: everyWire,
    tools: {
      write: (filePath, content) => ({ name: 'write', arguments: { filePath, content } }),
      run: (command) => ({ name: 'bash', arguments: { command, description: 'Run it' } }),
      read: (filePath) => ({ name: 'read', arguments: { filePath } }),
    },
    keyed: everyWire,
    reasons: everyWire,
    givesUp: { messages: cuts, chat: cuts, responses: cuts },
  },
  {
    client: 'kimi-code',
    source: { from: 'npm', package: '@moonshot-ai/kimi-code', bin: 'kimi' },
    args: (task) => ['-p', task],
    env: { KIMI_DISABLE_TELEMETRY: '1' },
    wires: everyWire,
    tools: {
      write: (path, content) => ({ name: 'Write', arguments: { path, content } }),
      run: (command) => ({ name: 'Bash', arguments: { command } }),
      read: (path) => ({ name: 'Read', arguments: { path } }),
    },
    keyed: [],
    reasons: [],
  },
  {
    client: 'cn',
    source: { from: 'npm', package: '@continuedev/cli', bin: 'cn' },
    // The setup prints this path relative to the home folder, but the agent runs in the working folder.
    args: (task) => ['--config', '../home/.continue/triwire.yaml', '--auto', '-p', task],
    env: { CONTINUE_TELEMETRY_ENABLED: '0' },
    wires: ['chat', 'messages'],
    tools: {
      write: (filepath, content) => ({ name: 'Write', arguments: { filepath, content } }),
      run: (command) => ({ name: 'Bash', arguments: { command } }),
      read: (filepath) => ({ name: 'Read', arguments: { filepath } }),
    },
    keyed: ['chat', 'messages'],
    reasons: [],
    givesUp: { chat: ['cut in a call'], messages: ['500', 'cut in a call'] },
    runsHalfCalls: true,
  },
  {
    client: 'cline',
    source: { from: 'npm', package: 'cline', bin: 'cline', native: '@cline/cli-{}/bin/cline' },
    args: (task) => ['--yolo', task],
    env: { CLINE_TELEMETRY_DISABLED: '1' },
    wires: ['chat'],
    tools: {
      write: (path, new_text) => ({ name: 'editor', arguments: { path, old_text: null, new_text } }),
      run: (command) => ({ name: 'run_commands', arguments: { commands: [command] } }),
      read: (path) => ({ name: 'read_files', arguments: { files: [{ path }] } }),
      done: (summary) => ({ name: 'submit_and_exit', arguments: { summary, verified: true } }),
    },
    keyed: [],
    reasons: [],
    givesUp: { chat: cuts },
  },
]

/** Libraries that run one of the agents above, and so behave like it. */
const libraries: readonly Agent[] = [
  {
    ...like('claude-code'),
    client: 'claude-agent-sdk',
    setup: 'claude-code',
    source: { from: 'npm', package: '@anthropic-ai/claude-agent-sdk', bin: 'node' },
    file: 'agents/claude-agent-sdk.mjs',
    args: (task) => [task],
  },
  {
    ...like('codex'),
    client: 'codex-sdk',
    setup: 'codex',
    source: { from: 'npm', package: '@openai/codex-sdk', bin: 'node' },
    file: 'agents/codex-sdk.mjs',
    args: (task) => [task],
  },
]

/** The agents from npm. */
export const npmAgents: readonly Agent[] = [...terminal, ...libraries]

function like(client: string): Agent {
  return terminal.find((agent) => agent.client === client)!
}
