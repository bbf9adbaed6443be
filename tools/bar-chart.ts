import { escapeHtml } from '../src/base/html.ts'

/** A chart of horizontal bars from zero: one value for each label. */
export interface BarChart {
  title: string
  /** Text below the title: what is better, and the unit. */
  note: string
  bars: readonly { label: string; value: number; isOwn: boolean }[]
  digits: number
}

const WIDTH = 720
const LABEL = 170
const VALUE = 70
const BAR = { height: 22, step: 34 }
const TOP = 62

/** Draws a chart as SVG on a light ground, which reads in a light and in a dark page. Pure. */
export function renderBarChart({ title, note, bars, digits }: BarChart): string {
  const most = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE)
  const height = TOP + bars.length * BAR.step + 10
  const described = `${title}: ${bars.map(({ label, value }) => `${label} ${value.toFixed(digits)}`).join(', ')}`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escapeHtml(described)}" font-family="system-ui, sans-serif">`,
    `<rect width="${WIDTH}" height="${height}" rx="12" fill="#f8fafc"/>`,
    `<text x="16" y="28" font-size="15" font-weight="600" fill="#0f172a">${escapeHtml(title)}</text>`,
    `<text x="16" y="47" font-size="12" fill="#475569">${escapeHtml(note)}</text>`,
    ...bars.map(({ label, value, isOwn }, index) => {
      const y = TOP + index * BAR.step
      const length = ((WIDTH - LABEL - VALUE) * value) / most
      const [x, baseline] = [LABEL, y + BAR.height - 6]
      return [
        `<text x="${x - 10}" y="${baseline}" font-size="13" fill="#0f172a" text-anchor="end">${escapeHtml(label)}</text>`,
        `<rect x="${x}" y="${y}" width="${Math.max(length, 1).toFixed(1)}" height="${BAR.height}" rx="3" fill="${isOwn ? '#1a5f9c' : '#94a3b8'}"/>`,
        `<text x="${(x + Math.max(length, 1) + 8).toFixed(1)}" y="${baseline}" font-size="13" fill="#0f172a">${value.toFixed(digits)}</text>`,
      ].join('')
    }),
    '</svg>',
    '',
  ].join('\n')
}
