import type { Program } from '../program.ts'
import { copilot, droid, kimiCode, pi, qwenCode } from './agents.ts'
import { claudeCode } from './claude-code.ts'
import { cline } from './cline.ts'
import { cn } from './cn.ts'
import { codex } from './codex.ts'
import { cursor, vscode, zed } from './editors.ts'
import { aider, gptme, miniSweAgent } from './litellm.ts'
import { kilo, opencode } from './opencode.ts'
import { aiSdk, anthropicNode, anthropicPython, langchain, openaiAgents, openaiNode, openaiPython } from './sdks.ts'

/** Every agent, editor and SDK that `setup` knows, by the name that users type. */
export const programs: Readonly<Record<string, Program>> = {
  'openai-node': openaiNode,
  'openai-python': openaiPython,
  'anthropic-node': anthropicNode,
  'anthropic-python': anthropicPython,
  'claude-code': claudeCode,
  codex,
  opencode,
  'qwen-code': qwenCode,
  pi,
  copilot,
  droid,
  kilo,
  'kimi-code': kimiCode,
  cn,
  cline,
  'mini-swe-agent': miniSweAgent,
  aider,
  gptme,
  vscode,
  zed,
  cursor,
  'ai-sdk': aiSdk,
  langchain,
  'openai-agents': openaiAgents,
}
