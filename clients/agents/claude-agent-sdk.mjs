import { query } from '@anthropic-ai/claude-agent-sdk'

// The settings are those of Claude Code, in the home folder.
const options = { allowedTools: ['Bash', 'Write', 'Read'], permissionMode: 'acceptEdits', settingSources: ['user'] }
for await (const message of query({ prompt: process.argv[2], options })) {
  if (message.type === 'result') console.log(message.subtype, message.result)
}
