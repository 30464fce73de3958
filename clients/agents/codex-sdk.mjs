import { Codex } from '@openai/codex-sdk'

// The settings are those of Codex, in the home folder.
const options = { skipGitRepoCheck: true, sandboxMode: 'danger-full-access', approvalPolicy: 'never' }
const turn = await new Codex().startThread({ ...options, modelReasoningEffort: 'medium' }).run(process.argv[2])
console.log(turn.finalResponse)
