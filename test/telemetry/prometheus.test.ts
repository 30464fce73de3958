import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import { families, processFamilies } from '../../src/telemetry/families.ts'
import { startCollector } from '../support/collector.ts'
import { testFolder } from '../support/folder.ts'
import { startTestGateway, testModel } from '../support/gateway.ts'
import { answers } from '../support/native.ts'
import { type Prometheus, promtool, startPrometheus, withoutPrometheus } from '../support/prometheus.ts'
import { runPython, withoutPython } from '../support/python.ts'
import { startRawUpstream, whole } from '../support/raw-upstream.ts'
import { until } from '../support/waiting.ts'

const ops = join(import.meta.dirname, '../../ops')
const alertsFile = join(ops, 'prometheus/alerts.yaml')
const dashboardFile = join(ops, 'grafana/triwire.json')

type Rule = { alert: string; expr: string }
type Panel = { title: string; type: string; targets?: { expr: string }[] }

const rules: Rule[] = parse(readFileSync(alertsFile, 'utf8')).groups.flatMap(({ rules }: { rules: Rule[] }) => rules)
const { panels } = JSON.parse(readFileSync(dashboardFile, 'utf8')) as { panels: Panel[] }

/** What the variables of the dashboard stand for here. */
const expressions = panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({
    title,
    expr: expr.replaceAll('$job', 'triwire').replaceAll('$model', '.*').replaceAll('$__rate_interval', '10s'),
  })),
)
const known = new Set<string>(Object.values({ ...families, ...processFamilies }).map(({ name }) => name))

test('every metric of the dashboard and of the alert rules is one that we export, with labels that it has', () => {
  const labels = new Map<string, readonly string[]>(
    Object.values({ ...families, ...processFamilies }).map(({ name, labels }) => [name, labels]),
  )
  const said = [...expressions.map(({ expr }) => expr), ...rules.map(({ expr }) => expr)].join('\n')
  const named = [...said.matchAll(/\b(?:triwire|process|nodejs)_[a-z0-9_]+/g)].map(([name]) => name)
  const plain = named.map((name) => name.replace(/_(?:bucket|sum|count)$/, ''))
  assert.deepEqual(
    [...new Set(plain)].filter((name) => !known.has(name)),
    [],
  )
  assert.ok(new Set(plain).size > 25)
  for (const [, name = '', matchers = ''] of said.matchAll(/\b((?:triwire|process|nodejs)_[a-z0-9_]+)\{([^}]*)\}/g)) {
    const own = labels.get(name.replace(/_(?:bucket|sum|count)$/, ''))!
    for (const [, label = ''] of matchers.matchAll(/([a-z_]+)(?:=~|!~|!=|=)"/g))
      assert.ok(label === 'job' || own.includes(label), `${name} has no label ${label}`)
  }
})

test('every metric of ours is in a panel, or in a rule', () => {
  const said = [...expressions.map(({ expr }) => expr), ...rules.map(({ expr }) => expr)].join('\n')
  assert.deepEqual(
    Object.values(families).flatMap(({ name }) => (said.includes(name) ? [] : [name])),
    [],
  )
})

test('the job that the rules name is the one that the ServiceMonitor of the chart makes', () => {
  const jobs = new Set(rules.flatMap(({ expr }) => [...expr.matchAll(/\bjob="([^"]+)"/g)].map(([, job]) => job!)))
  const objects = parseAllDocuments(readFileSync(join(ops, 'manifests/postgres.yaml'), 'utf8')).map((one) => one.toJS())
  const of = (kind: string) => objects.filter((one) => one.kind === kind)
  const [monitor] = of('ServiceMonitor')
  const label = monitor.spec.jobLabel as string
  const watched = of('Service').filter(({ metadata }) =>
    Object.entries(monitor.spec.selector.matchLabels).every(([name, value]) => metadata.labels[name] === value),
  )
  assert.ok(watched.length > 0)
  assert.deepEqual(new Set(watched.map(({ metadata }) => metadata.labels[label])), jobs)
})

test('promtool accepts the rules and each panel, and the expected alerts fire', { skip: withoutPrometheus() }, () => {
  assert.match(promtool(['check', 'rules', alertsFile]), new RegExp(`SUCCESS: ${rules.length} rules found`))
  assert.match(promtool(['test', 'rules', join(import.meta.dirname, 'alerts.test.yaml')]), /SUCCESS/)
  const recorded = expressions.map(({ expr }, index) => ({ record: `panel_${index}`, expr }))
  const file = join(testFolder('panels'), 'panels.yaml')
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules: recorded }] }))
  assert.match(promtool(['check', 'rules', file]), new RegExp(`SUCCESS: ${recorded.length} rules found`))
})

test("Grafana's published types accept the dashboard", {
  skip: withoutPython('grafana_foundation_sdk', 'grafana-foundation-sdk'),
}, () => {
  const read = runPython(join(import.meta.dirname, 'read-dashboard.py'), [dashboardFile])
  assert.deepEqual(
    read.map((line) => JSON.parse(line)[0]),
    expressions.map(({ title }) => title),
  )
})

/** A gateway where everything happens that a panel shows: answers, refusals, losses, doubts, failures, an account that is left alone. */
async function startBusy() {
  const collector = await startCollector()
  const upstream = await startRawUpstream()
  upstream.play(whole({ error: { message: 'no' } }, 401))
  const doubtful = await startRawUpstream()
  // More is cached than there is, and some of the output is reasoning.
  const details = { prompt_tokens_details: { cached_tokens: 20 }, completion_tokens_details: { reasoning_tokens: 1 } }
  const usage = { prompt_tokens: 9, completion_tokens: 3, ...details }
  doubtful.play(async (socket, request) => {
    await whole({ ...answers.chat, usage })(socket, request)
    // Nobody asked for this one.
    socket.write('HTTP/1.1 504 Late\r\ncontent-length: 0\r\n\r\n')
  })
  const gateway = await startTestGateway({
    cools: true,
    credit: '1000000',
    models: [
      testModel('native-chat', 'chat', { upstream: ['sim'] }),
      testModel('native-messages', 'messages', { upstream: ['sim'] }),
      testModel('doubtful', 'chat', { upstream: ['doubtful'] }),
      testModel('broken', 'chat', { upstream: ['away'] }),
    ],
    upstream: (url) => ({
      upstreams: {
        sim: { base_url: url, accounts: [{ name: 'a', key: 'provider-key-1' }] },
        doubtful: { base_url: doubtful.url, accounts: [{ name: 'c', key: 'provider-key-3' }] },
        away: { base_url: upstream.url, accounts: [{ name: 'b', key: 'provider-key-2' }] },
      },
    }),
    config: {
      limits: { requests_per_minute: 1_000_000 },
      metrics: { accounts: true, keys: true },
      // Nobody listens there.
      webhooks: [{ url: 'http://127.0.0.1:1/hook', secret: 'sixteen characters' }],
      telemetry: { otlp: { endpoint: collector.url, interval: 20, metrics_interval: 50 } },
    },
  })
  const { key } = gateway.store.createKey('tester', { budget: { nanos: 1_000_000_000n, per: 'day' } })
  await gateway.untilKnown(key)
  let round = 0
  return {
    gateway,
    async traffic() {
      round++
      const messages = [{ role: 'user', content: `Hi ${round % 2}` }]
      const ask = (path: string, body: object) => gateway.post(path, { messages, max_tokens: 50, ...body })
      const asked = [
        ask('/v1/chat/completions', { model: 'native-chat', stream: true }),
        ask('/v1/chat/completions', { model: 'native-messages', frequency_penalty: 1 }),
        ask('/v1/messages', { model: 'nothing' }),
        ask('/v1/chat/completions', { model: 'broken' }),
        ask('/v1/chat/completions', { model: 'doubtful' }),
      ]
      collector.status = round % 2 === 0 ? 200 : 400
      for (const answer of asked) await (await answer).text()
      if (round % 20 === 0) gateway.advance(61_000)
    },
  }
}

/** What an expression compares, without what it is compared to: a rule that answers nothing is one that is content. */
function comparedOf(expr: string): string {
  return expr.replace(/\s(?:==|>|<)\s*[\d.]+/g, '').replace(/ and triwire_account_balance_credits\s*$/, '')
}

/** Waits until each has an answer that is a number. */
async function untilAnswered(prometheus: Prometheus, asked: readonly string[], traffic: () => Promise<void>) {
  let silent = [...asked]
  let told = ''
  await until(async () => {
    await traffic()
    const left: string[] = []
    for (const expr of silent) {
      const found = await prometheus.query(expr)
      if (!found.some(({ value }) => Number.isFinite(value))) left.push(expr)
    }
    silent = left
    told = left.join('\n')
    return left.length === 0
  }, 'every expression is answered').catch((error) => {
    throw new Error(`${error.message}: ${told}`)
  })
}

test('a real Prometheus scrapes a gateway, and answers each panel and each rule', {
  skip: withoutPrometheus(),
}, async () => {
  const { gateway, traffic } = await startBusy()
  await traffic()
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
  promtool(['check', 'metrics'], text)
  const prometheus = await startPrometheus(new URL(gateway.adminUrl).host, [alertsFile])
  await until(async () => (await prometheus.query('up == 1')).length === 1, 'the gateway is scraped')
  const asked = [...expressions, ...rules].map(({ expr }) => comparedOf(expr))
  await untilAnswered(prometheus, asked, traffic)
  await until(async () => {
    await traffic()
    return (await prometheus.alerts()).get('TriwireUpstreamAccountRefused') === 'firing'
  }, 'a rule fires whose case has happened')
  const alerts = await prometheus.alerts()
  assert.notEqual(alerts.get('TriwireDown'), 'firing')
  assert.equal(alerts.get('TriwireLedgerUnwritable'), undefined)
})
