import type { Program } from '../program.ts'

/** The editor. It reads no settings file, and its makers' servers call the gateway. We could not run it. */
export const cursor: Program = {
  wires: ['chat'],
  assumes: 'a window of its own',
  settings: ({ origin, key, models }) => ({
    steps: [
      'Cursor Settings > Models > API Keys:',
      `  OpenAI API Key: ${key}`,
      `  Override OpenAI Base URL: ${origin}/v1`,
      `Cursor Settings > Models > Add model: ${models.map(({ model }) => model).join(', ')}`,
      "Its makers' servers ask the gateway, not this machine: the address must be one that the internet reaches.",
    ],
  }),
}
