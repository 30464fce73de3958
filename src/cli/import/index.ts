import type { Command } from 'commander'

/** Adds the commands that take over the settings of another gateway. */
export function addImportCommands(program: Command): void {
  const group = program.command('import').description("make a configuration of triwire's from that of another gateway")
  group
    .command('litellm <config>')
    .description("read LiteLLM's proxy configuration, write ours, and list what became of each setting")
    .option('--output <file>', 'write it into this file (default: print it, and the list on stderr)')
    .option('--force', 'with --output: replace a file that is there')
    .option('--prices <file>', "LiteLLM's or models.dev's price file, for models whose price is not known")
    .option('--unpriced-free', 'take over models without a known price, for nothing (default: they are left out)')
    .action(async (config: string, options, command: Command) => {
      const { importLitellm } = await import('./litellm.ts')
      importLitellm(config, options, command)
    })
}
