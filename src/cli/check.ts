import { type Command, Option } from 'commander'
import type { Config } from '../config/config.ts'
import { type OlderRelease, olderReleases } from '../config/older-releases.ts'
import type { UpstreamAnswered } from '../live/ask-upstreams.ts'
import { type GlobalOptions, timeoutOption } from './options.ts'
import { clearProgress, formatTable, note, print, showProgress, withoutSecretsIn } from './print.ts'

type CheckOptions = GlobalOptions & { for?: OlderRelease; online?: true; everyModel?: true; timeout: number }

/** Adds `check`, which reports mistakes in the configuration. `--online` also reports broken upstreams. */
export function addCheckCommand(program: Command): void {
  program
    .command('check')
    .description('check the configuration without starting the server')
    .addOption(
      new Option('--for <release>', 'also report what an older release cannot read, before you go back to it').choices(
        olderReleases,
      ),
    )
    .option('--online', 'send one cheap request to each upstream account, which its provider bills')
    .option('--every-model', 'with --online: send a request for each model of each account')
    .addOption(timeoutOption('with --online: the time limit of each answer, such as 500ms, 30s or 2m', '30s'))
    .action(async (_options, command: Command) => {
      const options = command.optsWithGlobals<CheckOptions>()
      if (options.everyModel && !options.online) command.error('error: --every-model is for --online')
      const { config, ofAccounts } = await load(options)
      const asked = options.online ? await askAll(config, options) : undefined
      const { listProxied } = await import('../config/egress.ts')
      const { catalog, upstreams, store } = config
      const warnings = [...config.warnings, ...(ofAccounts ?? [])]
      const proxied = listProxied(config)
      const proxies = proxied.map(({ name, ...proxy }) => ({ ...name, ...proxy }))
      if (!options.json) {
        for (const { name, proxy, source } of proxied)
          console.error(`note: ${Object.values(name)[0]} is asked through the proxy ${proxy} (${source})`)
        const { formatWarning } = await import('../config/warnings.ts')
        if (config.isBuiltIn && config.source)
          console.error(
            `note: ${config.source} has no catalog: the built-in models are served, and the simulator answers`,
          )
        for (const warning of warnings) console.error(`warning: ${formatWarning(warning)}`)
      }
      if (!ofAccounts)
        note(command, `${store.shown} does not answer, so the configuration was not compared with its accounts`)
      const { checkOlder, sayOlder } = await import('./check-older.ts')
      const { configText } = await import('../config/load.ts')
      const older = options.for && (await checkOlder(options.for, config, configText(options)))
      const failed = asked?.filter(({ ok }) => !ok) ?? []
      const counts = { models: catalog.entries.length, upstreams: upstreams.size, store: store.shown }
      const { changingRows, listChangingPrices } = await import('./price-text.ts')
      const prices = listChangingPrices(catalog.entries, Date.now())
      const { presetNotes, presetsBeside } = await import('./catalog/presets-file.ts')
      const presets = presetNotes(config, presetsBeside(config.file), Date.now())
      if (!options.json)
        for (const { model, as_of: day, source, message } of presets)
          console.error(`note: ${model} (preset of ${day}, ${source}): ${message}`)
      const data = {
        ...{ ok: failed.length === 0 && !older?.refuses.length, ...counts, warnings, proxies },
        ...(presets.length > 0 && { presets }),
        ...(prices.length > 0 && { prices }),
        ...(asked && { online: asked }),
        ...(older && { older }),
      }
      print(command, data, () =>
        [
          `the configuration is right: models ${counts.models}, upstreams ${counts.upstreams}, store ${store.shown}`,
          ...(prices.length > 0 ? ['', formatTable(changing, changingRows(prices))] : []),
          ...(asked ? ['', describe(asked)] : []),
          ...(older ? ['', sayOlder(older)] : []),
        ].join('\n'),
      )
      if (failed.length > 0 || older?.refuses.length) process.exitCode = 1
    })
}

/** Loads the configuration. @throws ConfigError, after printing its problems if the option `--json` is set */
async function load(options: CheckOptions): Promise<{ config: Config; ofAccounts: Config['warnings'] | undefined }> {
  const { loadConfig } = await import('../config/load.ts')
  const { ConfigError } = await import('../config/problem.ts')
  const { earlierStoreMistake } = await import('../config/store-place.ts')
  const { startMistake } = await import('../store/open.ts')
  try {
    const config = loadConfig(options)
    const message = earlierStoreMistake(config)
    const mistake = message === undefined ? await startMistake(config) : { path: 'store', message }
    if (mistake) throw new ConfigError([mistake])
    const found = await warnOfStore(config).catch(() => undefined)
    if (found?.otherZone) throw new ConfigError([{ path: 'store', message: found.otherZone }])
    return { config, ofAccounts: found?.warnings }
  } catch (error) {
    if (options.json && error instanceof ConfigError)
      console.log(JSON.stringify({ ok: false, problems: error.problems.map(withoutSecretsIn) }))
    throw error
  }
}

/**
 * Warns of accounts with a plan that is not in the configuration, and of sign-in rules with an account that is not in
 * the store. `otherZone` says that a server would not start, because the store has another time zone.
 * @throws the error of a database that does not respond
 */
async function warnOfStore({ store, plans, signIn, reporting }: Config) {
  const { lookAtAccounts } = await import('../store/open.ts')
  const { findPlanless, sayPlanless } = await import('../accounts/planless.ts')
  const { warnOfRules } = await import('./sign-in.ts')
  const { sayOtherZone } = await import('../accounts/usage/reporting.ts')
  const found = await lookAtAccounts(store, async (accounts) => ({
    otherZone: sayOtherZone(store.shown, await accounts.readUsageState(), reporting.timeZone),
    planless: await findPlanless(accounts, plans),
    ofRules: await warnOfRules(accounts, signIn?.rules ?? []),
  }))
  if (!found) return { warnings: [] }
  const { otherZone, planless, ofRules } = found
  if (planless.length === 0) return { otherZone, warnings: ofRules }
  const { accounts, more, cure } = sayPlanless(planless)
  const names = accounts.map(({ account, plan }) => `${account} (${plan})`).join(', ')
  const message = `plans lacks those of the accounts ${names}${more ? ' and others' : ''}. ${cure}`
  return { otherZone, warnings: [{ path: 'plans', message }, ...ofRules] }
}

async function askAll(config: Config, { everyModel, timeout }: CheckOptions): Promise<UpstreamAnswered[]> {
  // The built-in configuration has no upstream except the simulator, which only a running server has.
  if (config.isBuiltIn) return []
  const { askUpstreams } = await import('../live/ask-upstreams.ts')
  try {
    return await askUpstreams(config, {
      ...(everyModel && { everyModel }),
      timeoutMs: timeout,
      onNext({ upstream, account }) {
        showProgress(`asking ${upstream.name}${account ? ` as ${account.name}` : ''}`)
      },
    })
  } finally {
    clearProgress()
  }
}

const changing = ['model', 'input / output now', 'next changes']

const columns = ['upstream', 'account', 'model', 'wire', 'result', 'ms', 'note']

function describe(asked: readonly UpstreamAnswered[]): string {
  if (asked.length === 0) return 'there is no upstream to ask: no model of a catalog names one'
  const rows = asked.map(({ upstream, account, model, wire, ok, ms, note }) => {
    return [upstream, account ?? '-', model, wire, ok ? 'ok' : 'failed', `${ms}`, note]
  })
  const credentials = asked.flatMap(({ upstream, account, credential }) =>
    credential ? [[upstream, account ?? '-', ...sayCredential(credential)]] : [],
  )
  const owned = credentials.length > 0 ? `\n\n${formatTable(credentialColumns, credentials)}` : ''
  const failed = asked.filter(({ ok }) => !ok).length
  const verdict = failed === 0 ? 'every account answers' : `${failed} of ${asked.length} questions failed`
  return `${formatTable(columns, rows)}${owned}\n\n${verdict}`
}

const credentialColumns = ['upstream', 'account', 'credential', 'identity', 'ends in', "cloud's clock"]

function sayCredential(credential: NonNullable<UpstreamAnswered['credential']>): string[] {
  const { source, identity, ends_in_seconds: ends, clock_ahead_seconds: ahead } = credential
  const clock = ahead === null ? '-' : ahead === 0 ? 'as ours' : `${Math.abs(ahead)} s ${ahead > 0 ? 'ahead' : 'late'}`
  return [source ?? '-', identity ?? '-', ends === null ? 'never' : `${Math.floor(ends / 60)} min`, clock]
}
