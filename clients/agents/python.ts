import type { Source } from '../installs.ts'
import { type Agent, everyWire } from './agent.ts'
import { npmAgents } from './npm.ts'

const cuts = ['cut in text', 'cut in a call'] as const
const noTool = () => ({ name: 'none', arguments: {} })
const everything = (command: string) => ({ name: 'bash', arguments: { command } })

/** The agents from PyPI. */
export const pythonAgents: readonly Agent[] = [
  {
    client: 'mini-swe-agent',
    source: python('mini-swe-agent', 'mini'),
    args: (task, _model, wire) => {
      const config = ['-c', 'mini.yaml', ...(wire === 'responses' ? ['-c', 'model.model_class=litellm_response'] : [])]
      return [...config, '-y', '--exit-immediately', '-t', task, '-o', 'trajectory.json']
    },
    env: { LITELLM_LOCAL_MODEL_COST_MAP: 'True', MSWEA_SILENT_STARTUP: '1' },
    wires: everyWire,
    tools: {
      // Its only tool is a shell.
      write: (path, content) => everything(`printf '%s' '${content}' > '${path}'`),
      run: everything,
      read: (path) => everything(`cat '${path}'`),
      done: (text) => everything(`echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo '${text}'`),
    },
    keyed: [],
    reasons: [],
    whole: everyWire,
  },
  {
    client: 'aider',
    source: python('aider-chat', 'aider', 'aider'),
    args: (task) => {
      const quiet = ['--no-check-update', '--no-show-model-warnings', '--no-show-release-notes', '--analytics-disable']
      return ['--yes-always', '--no-git', '--edit-format', 'whole', ...quiet, '-m', task, 'first.txt', 'second.txt']
    },
    env: { LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
    wires: ['chat', 'messages'],
    tools: { write: noTool, run: noTool, read: noTool },
    edit: (path, content) => `${path}\n\`\`\`\n${content}\n\`\`\`\n`,
    keyed: [],
    reasons: [],
  },
  {
    client: 'gptme',
    source: python('gptme', 'gptme'),
    args: (task, model, wire) => {
      const options = ['--non-interactive', '--tool-format', 'tool', '-t', 'shell,save,read']
      return [...options, '-m', `${wire === 'messages' ? 'anthropic' : 'openai'}/${model}`, task]
    },
    env: { GPTME_CHECK: 'false' },
    wires: ['messages', 'responses'],
    tools: {
      write: (path, content) => ({ name: 'save', arguments: { path, content } }),
      run: (command) => ({ name: 'shell', arguments: { command } }),
      read: (path) => ({ name: 'read', arguments: { path } }),
      done: () => ({ name: 'complete', arguments: {} }),
    },
    keyed: [],
    reasons: [],
    givesUp: { messages: cuts, responses: cuts },
  },
  {
    ...npmAgents.find(({ client }) => client === 'claude-agent-sdk')!,
    client: 'claude-agent-sdk-python',
    source: python('claude-agent-sdk', 'python'),
    file: 'python/claude_agent.py',
  },
]

function python(name: string, bin: string, set = name): Source {
  return { from: 'python', package: name, set, bin }
}
