import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../harness/app/app.ts'
import { ROOT, readRepository } from '../tidy/source-file.ts'
import { findProgram } from './program.ts'

interface Panel {
  title: string
  type: string
  gridPos: { x: number; y: number; w: number; h: number }
  targets?: { expr: string; legendFormat: string }[]
}

const dashboard = JSON.parse(readFileSync(join(ROOT, 'deploy/grafana/signalbox.json'), 'utf8')) as { panels: Panel[] }
const queries = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map((target) => ({ title, ...target })))

/** Metrics that the dashboard leaves out, by a pattern of the name, with the reason. */
const LEFT_OUT: [pattern: RegExp, reason: string][] = [
  [/^process_cpu_(?:user|system)_seconds_total$/, 'their sum is shown'],
  [/^process_(?:virtual_memory|heap)_bytes$/, 'address space that is not memory in use'],
  [/^nodejs_eventloop_lag_(?!p99)/, 'the 99th percentile is shown'],
  [/^nodejs_eventloop_utilization_/, 'the lag and the use of the processor are shown'],
  [/^nodejs_active_/, 'counts of handles and requests, for an inquiry of a leak'],
  [/^nodejs_(?:heap_size_total|external_memory)_bytes$/, 'the resident memory and the used heap are shown'],
  [/^nodejs_heap_space_/, 'the parts of the heap, for an inquiry of a leak'],
  [/^nodejs_version_info$/, 'the version of Node is that of the image'],
]

/** Words of PromQL in the queries that are not names of metrics. */
const WORDS = /^(?:sum|max|min|count|rate|increase|topk|histogram_quantile|time|by|le|or)$/

let app: TestApp
/** The type of each metric, as the service exposes them. */
const types = new Map<string, string>()

beforeAll(async () => {
  // With a log and a bus, so that their metrics exist; nothing connects to them.
  const realtime = {
    INTEGRATION_REALTIME_APP_ID: 'app',
    INTEGRATION_REALTIME_KEY: 'k',
    INTEGRATION_REALTIME_SECRET: 's',
  }
  const bus = { ...realtime, INTEGRATION_REALTIME_CLUSTER: 'embedded', REALTIME_BUS_SUBJECT: 'test.realtime' }
  app = await createTestApp({ env: { EVENT_LOG_URL: 'nats://127.0.0.1:1', ...bus } })
  const { body } = await app.scrape()
  for (const [, name = '', type = ''] of body.matchAll(/^# TYPE (\S+) (\S+)$/gm)) types.set(name, type)
})
afterAll(() => app[Symbol.asyncDispose]())

/** The series of a query without labels and strings: `rate(a{b="c"}[1m])` has `a`. */
function listSeries(expr: string): string[] {
  const bare = expr
    .replaceAll(/"[^"]*"/g, '')
    .replaceAll(/\{[^}]*\}|\[[^\]]*\]/g, '')
    .replaceAll(/\bby \([^)]*\)/g, '')
  return [...bare.matchAll(/[a-z]\w*/g)].map(([word]) => word).filter((word) => !WORDS.test(word))
}

/** The metric of a series: histograms and summaries have several. */
function metricOf(series: string): string {
  const base = series.replace(/_(?:bucket|count|sum)$/, '')
  return ['histogram', 'summary'].includes(types.get(base) ?? '') ? base : series
}

/** The labels of each metric, as the code declares them. Histograms also have `le`; a scrape adds `job` and `instance`. */
function readLabels(): Map<string, string[]> {
  const code = readRepository().filter(({ path }) => /^src\/operations\/metrics\/.*(?<!\.test)\.ts$/.test(path))
  const declared = code.flatMap(({ text }) => [
    ...text.matchAll(
      /metrics\.(?:gauge|counter|histogram)\(\s*(?:\[[^\]]*\],\s*)?'(\w+)',\s*(?:'[^']*'|"[^"]*")(?:,\s*\[([^\]]*)\])?/g,
    ),
  ])
  return new Map(
    declared.map(([, name = '', labels = '']) => [
      name,
      [...labels.matchAll(/'(\w+)'/g)].map(([, label = '']) => label),
    ]),
  )
}

test('every metric that a panel queries is exposed by the service', () => {
  const named = queries.flatMap(({ title, expr }) => listSeries(expr).map((series) => ({ title, series })))
  expect(named.length).toBeGreaterThan(30)
  expect(named.filter(({ series }) => !types.has(metricOf(series)))).toEqual([])
})

test('every metric of the service is on a panel or left out with a reason', () => {
  const shown = new Set(queries.flatMap(({ expr }) => listSeries(expr).map(metricOf)))
  expect(types.size).toBeGreaterThan(30)
  const missing = [...types.keys()].filter(
    (name) => !shown.has(name) && !LEFT_OUT.some(([pattern]) => pattern.test(name)),
  )
  expect(missing).toEqual([])
})

test('nothing is left out that is shown or that the service does not expose', () => {
  const shown = new Set(queries.flatMap(({ expr }) => listSeries(expr).map(metricOf)))
  const idle = LEFT_OUT.filter(([pattern]) => ![...types.keys()].some((name) => pattern.test(name) && !shown.has(name)))
  expect(idle).toEqual([])
  expect([...shown].filter((name) => LEFT_OUT.some(([pattern]) => pattern.test(name)))).toEqual([])
})

test('counters and histograms are queried by rate or increase, gauges are not', () => {
  const wrong = queries.filter(({ expr }) =>
    listSeries(expr).some((series) => {
      const isCounted = types.get(metricOf(series)) !== 'gauge'
      return isCounted !== new RegExp(`(?:rate|increase)\\(${series}\\b`).test(expr)
    }),
  )
  expect(wrong).toEqual([])
})

test('every label that a query groups by or selects is one of its metric', () => {
  const labels = readLabels()
  expect(labels.get('http_request_duration_seconds')).toEqual(['method', 'route', 'status'])
  const wrong = queries.flatMap(({ title, expr }) => {
    const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', '))
    const selected = [...expr.matchAll(/(\w+)(?:=~|!=|=)"/g)].map(([, name = '']) => name)
    const known = listSeries(expr).flatMap((series) => labels.get(metricOf(series)) ?? [])
    const own = ['job', 'instance', 'le', ...known]
    return [...grouped, ...selected].filter((label) => !own.includes(label)).map((label) => `${title}: ${label}`)
  })
  expect(wrong).toEqual([])
})

test('every legend names labels that the query keeps', () => {
  const wrong = queries.filter(({ expr, legendFormat }) => {
    const kept = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', '))
    const isGrouped = /\b(?:sum|max|min|count)\b/.test(expr)
    const named = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, name = '']) => name)
    return isGrouped ? named.some((name) => !kept.includes(name)) : named.some((name) => name !== 'instance')
  })
  expect(wrong).toEqual([])
})

test('panels have different titles and do not overlap', () => {
  const titles = dashboard.panels.map(({ title }) => title)
  expect(new Set(titles).size).toBe(titles.length)
  const overlapping = dashboard.panels.filter(({ gridPos: place }, index) =>
    dashboard.panels
      .slice(index + 1)
      .some(
        ({ gridPos: two }) =>
          place.x < two.x + two.w && two.x < place.x + place.w && place.y < two.y + two.h && two.y < place.y + place.h,
      ),
  )
  expect(overlapping).toEqual([])
  expect(dashboard.panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true)
})

test('every query is valid PromQL: by promtool where it is installed, else by its brackets', () => {
  const exprs = queries.map(({ expr }) => expr.replaceAll('$__rate_interval', '1m'))
  for (const expr of exprs) expect(isBalanced(expr), expr).toBe(true)
  const promtool = findProgram('promtool', 'the queries are checked by their brackets alone')
  if (!promtool) return
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-dashboard-'))
  try {
    const rules = exprs.map((expr, index) => ({ record: `panel:query_${index}`, expr }))
    const file = join(directory, 'rules.json')
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
    const { status, stdout, stderr } = spawnSync(promtool, ['check', 'rules', file], { encoding: 'utf8' })
    expect(status, stdout + stderr).toBe(0)
    expect(stdout).toContain(`${exprs.length} rules found`)
  } finally {
    rmSync(directory, { recursive: true })
  }
})

function isBalanced(expr: string): boolean {
  const open: string[] = []
  for (const char of expr.replaceAll(/"[^"]*"/g, '')) {
    if ('([{'.includes(char)) open.push(char)
    else if (')]}'.includes(char) && open.pop() !== { ')': '(', ']': '[', '}': '{' }[char]) return false
  }
  return open.length === 0
}
