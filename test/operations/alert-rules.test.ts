import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../harness/app/app.ts'
import { TEST_METRICS_TOKEN } from '../harness/app/test-secrets.ts'
import { openCellsService } from '../harness/carriage/cells-service.ts'
import { addWebhook } from '../harness/delivery/ledger-rows.ts'
import { startReceiver } from '../harness/fakes/receiver.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import { waitFor } from '../harness/run/wait.ts'
import { listHeadings, slugOf } from '../tidy/markdown.ts'

const FOLDER = join(PROJECT_ROOT, 'deploy', 'prometheus')
const rules = readFileSync(join(FOLDER, 'alerts.yml'), 'utf8')
const unitTests = readFileSync(join(FOLDER, 'alerts.test.yml'), 'utf8')
const operations = readFileSync(join(PROJECT_ROOT, 'docs', 'operations.md'), 'utf8')

/** Every rule as text, by its name. */
const byName = new Map(
  rules
    .split(/^ {6}- alert: /m)
    .slice(1)
    .map((text) => [text.slice(0, text.indexOf('\n')), text] as const),
)

const hasPromtool = spawnSync('promtool', ['--version']).status === 0
if (!hasPromtool)
  process.stderr.write(
    'promtool is not on this machine (Debian: apt-get install prometheus), so its checks of deploy/prometheus are left out; ' +
      'the other tests of this file hold the rules to the metrics and to the documentation.\n',
  )

const scratch = mkdtempSync(join(tmpdir(), 'signalbox-alerts-'))
afterAll(() => rmSync(scratch, { recursive: true }))

/** Runs promtool where it is; its output is part of a failure. */
function runPromtool(...args: string[]): void {
  if (!hasPromtool) return
  const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: FOLDER, encoding: 'utf8' })
  expect(`${stdout}${stderr}`, args.join(' ')).toContain('SUCCESS')
  expect(status).toBe(0)
}

test('promtool finds the alert rules well-formed', () => runPromtool('check', 'rules', 'alerts.yml'))

test('promtool passes the unit tests of the alert rules', () => runPromtool('test', 'rules', 'alerts.test.yml'))

test('every alert rule fires in one unit test and is silent in the same or another one', () => {
  const cases = unitTests.split(/^ {6}- eval_time: /m).slice(1)
  const named = (isSilent: boolean) =>
    new Set(
      cases
        .filter((text) => text.includes('exp_alerts: []') === isSilent)
        .map((text) => /alertname: (\w+)/.exec(text)?.[1]),
    )
  expect([...named(false)].sort()).toEqual([...byName.keys()].sort())
  expect([...named(true)].sort()).toEqual([...byName.keys()].sort())
})

test('every metric and label value of an alert rule is in a scrape of a fresh process', async () => {
  const realtime = {
    INTEGRATION_REALTIME_APP_ID: 'app',
    INTEGRATION_REALTIME_KEY: 'k',
    INTEGRATION_REALTIME_SECRET: 's',
  }
  const bus = { ...realtime, INTEGRATION_REALTIME_CLUSTER: 'embedded', REALTIME_BUS_SUBJECT: 'test.realtime' }
  await using app = await createTestApp({ env: { EVENT_LOG_URL: 'nats://127.0.0.1:1', ...bus } })
  await using cells = await openCellsService()
  const service = await cells.start()
  const scrapeCells = async () => {
    const token = { authorization: `Bearer ${TEST_METRICS_TOKEN}` }
    return (await service.call('GET', '/metrics', undefined, token)).body as string
  }
  await waitFor('the sizes of cells', async () => /^cell_database_size_bytes\{/m.test(await scrapeCells()))
  const ofCells = (await scrapeCells()).match(/^cell_.*$/gm) ?? []
  const body = [(await app.scrape()).body, ...ofCells].join('\n')
  for (const [name, text] of byName) {
    const [, expr = ''] = /expr: ([\s\S]*?)\n {8}(?:for|labels):/.exec(text) ?? []
    const metrics = [...expr.matchAll(/\b(?:[a-z]+_)+[a-z]+\b(?=[{)[])/g)]
      .map(([name]) => name)
      .filter((item) => !item.endsWith('_over_time'))
    if (name !== 'SignalboxProcessGone') expect(metrics.length, name).toBeGreaterThan(0)
    for (const metric of metrics) expect(body, `${name}: ${metric}`).toMatch(new RegExp(`^${metric}[{ ]`, 'm'))
    for (const [, metric, label, value = ''] of expr.matchAll(/(\w+)\{(\w+)=~?"([^"]+)"/g))
      for (const status of metric === 'up' ? [] : value.replace('5..', '500').split('|'))
        expect(body, `${name}: ${status}`).toMatch(new RegExp(`^${metric}\\{[^}]*${label}="${status}"`, 'm'))
  }
})

test('every alert rule names a section of the documentation', () => {
  for (const [name, text] of byName) {
    const [, page = '', anchor = ''] = /runbook: (docs\/operations(?:\/[\w-]+)?\.md)#(\S+)/.exec(text) ?? []
    const headings = listHeadings(readFileSync(join(PROJECT_ROOT, page), 'utf8'))
    expect(
      headings.map(({ title }) => slugOf(title)),
      name,
    ).toContain(anchor)
  }
})

test('docs/operations.md quotes the alert rules as they are', () => {
  const [, quoted] = /<!-- deploy\/prometheus\/alerts\.yml -->\n```yaml\n([\s\S]*?)```/.exec(operations) ?? []
  expect(quoted).toBe(rules)
})

/** Scrapes of one process, a minute apart, as the input of a unit test of promtool. */
async function recordScrapes(app: TestApp, minutes: number, atMinute: (minute: number) => Promise<void>) {
  const samples = new Map<string, (string | undefined)[]>()
  for (let minute = 0; minute < minutes; minute += 1) {
    await atMinute(minute)
    for (const line of (await app.scrape()).body.split('\n')) {
      const [, series = '', value = ''] = /^(\w+(?:\{.*\})?) (\S+)$/.exec(line) ?? []
      if (/^(?:webhook_out_(?:notices|auto|attempts_total)|stored_|signalbox_)/.test(series))
        samples.set(series, [...(samples.get(series) ?? Array.from({ length: minute }, () => undefined)), value])
    }
    app.clock.advance(60_000)
  }
  return [...samples].map(([series, values]) => ({
    series,
    values: `${values.map((value) => value ?? '_').join(' ')} stale`,
  }))
}

/** Checks with promtool, where it is, whether an alert fires at a minute over recorded scrapes. */
function expectAlert(name: string, at: { minute: number; isFiring: boolean }, inputSeries: readonly object[]): void {
  if (!hasPromtool) return
  const { minute, isFiring } = at
  const path = join(scratch, 'scene.json')
  const expected = [{ eval_time: `${minute}m`, alertname: name, exp_alerts: [] }]
  const scene = {
    rule_files: [join(FOLDER, 'alerts.yml')],
    evaluation_interval: '30s',
    tests: [{ interval: '1m', input_series: inputSeries, alert_rule_test: expected }],
  }
  // JSON is YAML.
  writeFileSync(path, JSON.stringify(scene))
  const { stdout, stderr } = spawnSync('promtool', ['test', 'rules', path], { encoding: 'utf8' })
  const text = `${stdout}${stderr}`
  // The expectation is that nothing fires, so promtool names what does.
  expect(text, name).toContain(isFiring ? `Labels:{alertname="${name}"` : 'SUCCESS')
}

test('the scrapes of a service that disables a webhook and then stops fire both alerts', async () => {
  await using receiver = await startReceiver()
  await using app = await createTestApp({
    env: { WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${receiver.port}` },
  })
  receiver.behave({ kind: 'redirect', location: 'https://elsewhere.example.com/' })
  const body = { url: `${receiver.origin}/`, is_global: true }
  const { data } = (await app.admin('POST', '/api/v3/webhook/webhook', body)).body
  const scrapes = await recordScrapes(app, 8, async (minute) => {
    if (minute !== 4) return
    await app.database.pool.query('update webhook set consecutive_failures = 19 where document_id = $1', [
      data.document_id,
    ])
    await app.admin('POST', `/api/v3/webhook/webhook/${data.document_id}/test`)
    await app.database.pool.query("update webhook_dispatch_open set is_test = false, attempt_trigger = 'schedule'")
    await app.settle()
  })
  expect(scrapes.find(({ series }) => series.includes('webhook.auto-disable'))?.values).toBe('0 0 0 0 1 1 1 1 stale')
  expectAlert('SignalboxWebhookDisabled', { minute: 3, isFiring: false }, scrapes)
  expectAlert('SignalboxWebhookDisabled', { minute: 6, isFiring: true }, scrapes)
  expectAlert('SignalboxGone', { minute: 7, isFiring: false }, scrapes)
  expectAlert('SignalboxGone', { minute: 14, isFiring: true }, scrapes)
  expectAlert('SignalboxRoleGone', { minute: 14, isFiring: true }, scrapes)
})

test('the scrapes of a service with a secret that does not open fire SignalboxSecretUnreadable', async () => {
  await using app = await createTestApp()
  const webhook = await addWebhook(app)
  const scrapes = await recordScrapes(app, 6, async (minute) => {
    if (minute !== 3) return
    await app.database.pool.query('update webhook set secret_encrypted = $2 where document_id = $1', [
      webhook,
      'v1.00000000.aa.bb',
    ])
  })
  expect(scrapes.find(({ series }) => series === 'stored_secrets_unreadable')?.values).toBe('0 0 0 1 1 1 stale')
  expectAlert('SignalboxSecretUnreadable', { minute: 5, isFiring: true }, scrapes)
})
