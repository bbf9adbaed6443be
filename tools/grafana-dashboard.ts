import type { Panel, Row } from './grafana-panel.ts'
import { ROWS } from './grafana-panels.ts'

/** Grafana's grid has 24 columns. */
const COLUMNS = 24
const SIZES = { stat: { w: 4, h: 4 }, timeseries: { w: 8, h: 8 } } as const

const DATASOURCE = { type: 'prometheus', uid: '$datasource' }

/** Renders deploy/grafana/signalbox.json from the panels. Its two variables choose the Prometheus and the job. */
export function renderDashboard(): string {
  const dashboard = {
    uid: 'signalbox',
    title: 'Signalbox',
    tags: ['signalbox'],
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    schemaVersion: 39,
    time: { from: 'now-3h', to: 'now' },
    timezone: 'browser',
    templating: { list: VARIABLES },
    annotations: { list: [] },
    panels: layOut(ROWS),
  }
  return `${JSON.stringify(dashboard, null, 2)}\n`
}

const VARIABLES = [
  { name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus', hide: 0 },
  {
    name: 'job',
    label: 'Job',
    type: 'query',
    datasource: DATASOURCE,
    query: { query: 'label_values(database_up, job)', refId: 'job' },
    refresh: 1,
    includeAll: true,
    multi: true,
    allValue: '.+',
    current: { text: 'All', value: '$__all' },
    hide: 0,
  },
]

/** Places rows under each other, and the panels of a row from left to right. */
function layOut(rows: readonly Row[]): object[] {
  const placed: object[] = []
  let y = 0
  for (const { title, panels } of rows) {
    placed.push({ id: placed.length + 1, type: 'row', title, collapsed: false, gridPos: { x: 0, y, w: COLUMNS, h: 1 } })
    y += 1
    let x = 0
    for (const panel of panels) {
      const { w, h } = SIZES[panel.kind]
      if (x + w > COLUMNS) {
        x = 0
        y += h
      }
      placed.push(buildPanel(panel, { id: placed.length + 1, gridPos: { x, y, w, h } }))
      x += w
    }
    y += SIZES[panels.at(-1)?.kind ?? 'stat'].h
  }
  return placed
}

function buildPanel(panel: Panel, place: { id: number; gridPos: object }): object {
  const { title, description, unit, kind, queries } = panel
  return {
    ...place,
    type: kind,
    title,
    description,
    datasource: DATASOURCE,
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + index),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend,
      range: kind === 'timeseries',
      instant: kind === 'stat',
    })),
    fieldConfig: { defaults: { unit, min: 0, ...(kind === 'stat' && buildThresholds(panel)) }, overrides: [] },
    options: kind === 'stat' ? STAT_OPTIONS : TIMESERIES_OPTIONS,
  }
}

const STAT_OPTIONS = { colorMode: 'value', graphMode: 'none', reduceOptions: { calcs: ['lastNotNull'] } }
const TIMESERIES_OPTIONS = {
  legend: { displayMode: 'list', placement: 'bottom' },
  tooltip: { mode: 'multi', sort: 'desc' },
}

/** The colours of a stat, each from its value on. Where a small figure is the bad one, red comes first. */
function buildThresholds({ limits }: Panel): object {
  if (!limits) return { color: { mode: 'fixed', fixedColor: 'text' } }
  const { orange, red } = limits
  const steps =
    red < orange
      ? [
          { color: 'red', value: null },
          { color: 'green', value: orange },
        ]
      : [
          { color: 'green', value: null },
          { color: 'orange', value: orange },
          { color: 'red', value: red },
        ]
  return { color: { mode: 'thresholds' }, thresholds: { mode: 'absolute', steps } }
}
