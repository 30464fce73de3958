import { spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd } from './at-end.ts'
import { testFolder } from './folder.ts'
import { freePort } from './listen.ts'
import { until } from './waiting.ts'

/** A real Prometheus for a test, with its own folder and port. It scrapes the target periodically. */
export type Prometheus = {
  url: string
  /** Returns the current result of an expression, one entry for each series. */
  query(expr: string): Promise<{ labels: Record<string, string>; value: number }[]>
  /** Returns the states of pending and firing alerts, by name. */
  alerts(): Promise<Map<string, string>>
}

/** For `skip` of a test. With TRIWIRE_TEST_PROMETHEUS=1 nothing is skipped. @returns the reason to skip, or false */
export function withoutPrometheus(): string | false {
  if (process.env['TRIWIRE_TEST_PROMETHEUS'] === '1') return false
  const isThere = ['prometheus', 'promtool'].every((name) => spawnSync(name, ['--version']).status === 0)
  return isThere ? false : 'no Prometheus is installed (apt-get install prometheus): nothing is shown of a scrape'
}

/** Runs `promtool`. @returns its output @throws Error with the mistakes that it finds */
export function promtool(args: readonly string[], input = ''): string {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' })
  if (status !== 0) throw new Error(`promtool ${args.join(' ')}: ${stdout}${stderr}`)
  return stdout
}

/** @param target host and port of an admin listener @param rules rule files @param everyMs the scrape interval */
export async function startPrometheus(target: string, rules: readonly string[], everyMs = 500): Promise<Prometheus> {
  const folder = testFolder('prometheus')
  const [config, every] = [join(folder, 'prometheus.yaml'), `${everyMs}ms`]
  const text = {
    global: { scrape_interval: every, scrape_timeout: every, evaluation_interval: every },
    rule_files: rules,
    scrape_configs: [{ job_name: 'triwire', static_configs: [{ targets: [target] }] }],
  }
  // JSON is valid YAML.
  writeFileSync(config, JSON.stringify(text))
  promtool(['check', 'config', config])
  const address = `127.0.0.1:${await freePort()}`
  const child = spawn(
    'prometheus',
    [`--config.file=${config}`, `--storage.tsdb.path=${join(folder, 'data')}`, `--web.listen-address=${address}`],
    { stdio: 'ignore' },
  )
  atEnd(() => child.kill('SIGKILL'))
  const url = `http://${address}`
  await until(
    () =>
      fetch(`${url}/-/ready`).then(
        (one) => one.ok,
        () => false,
      ),
    'Prometheus is ready',
  )
  return { url, query, alerts }

  async function query(expr: string): Promise<{ labels: Record<string, string>; value: number }[]> {
    const response = await fetch(`${url}/api/v1/query?${new URLSearchParams({ query: expr })}`)
    const answer = (await response.json()) as {
      error?: string
      data: { result: { metric: Record<string, string>; value: [number, string] }[] }
    }
    if (answer.error) throw new Error(`${expr}: ${answer.error}`)
    return answer.data.result.map(({ metric: labels, value }) => ({ labels, value: Number(value[1]) }))
  }

  async function alerts(): Promise<Map<string, string>> {
    const answer = (await (await fetch(`${url}/api/v1/alerts`)).json()) as {
      data: { alerts: { labels: { alertname: string }; state: string }[] }
    }
    return new Map(answer.data.alerts.map(({ labels, state }) => [labels.alertname, state]))
  }
}
