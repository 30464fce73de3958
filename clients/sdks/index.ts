import { ai } from './ai.ts'
import { anthropic } from './anthropic.ts'
import { langchain } from './langchain.ts'
import { openai } from './openai.ts'
import { openaiAgents } from './openai-agents.ts'
import type { Sdk } from './sdk.ts'

export const sdks: readonly Sdk[] = [openai, anthropic, ai, langchain, openaiAgents]
