/** A box of a picture; rows and columns count from 0. */
interface Box {
  id: string
  column: number
  row: number
  title: string
  /** A second line, smaller. */
  note?: string
}

/** A picture of boxes and arrows between them. */
export interface Picture {
  /** Text for who does not see it. */
  alt: string
  boxes: readonly Box[]
  arrows: readonly { from: string; to: string; label?: string }[]
}

const BOX = { width: 176, height: 60 }
const STEP = { x: 264, y: 108 }
const MARGIN = 16

/** Draws a picture as SVG on a light ground, which reads in a light and in a dark page. Pure. */
export function renderPicture({ alt, boxes, arrows }: Picture): string {
  const last = (pick: (box: Box) => number) => Math.max(...boxes.map(pick))
  const width = last(({ column }) => column) * STEP.x + BOX.width + 2 * MARGIN
  const height = last(({ row }) => row) * STEP.y + BOX.height + 2 * MARGIN
  const place = new Map(boxes.map((box) => [box.id, { x: MARGIN + box.column * STEP.x, y: MARGIN + box.row * STEP.y }]))
  const drawn = arrows.map(({ from, to, label }) => {
    const [start, end] = [place.get(from), place.get(to)]
    if (!start || !end) throw new Error(`An arrow from "${from}" to "${to}" has no box.`)
    return drawArrow(start, end, label)
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeXml(alt)}" font-family="system-ui, sans-serif">`,
    '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" fill="#475569"/></marker></defs>',
    `<rect width="${width}" height="${height}" rx="12" fill="#f8fafc"/>`,
    ...drawn,
    ...boxes.map((box) => drawBox(box, place.get(box.id) as Point)),
    '</svg>',
    '',
  ].join('\n')
}

interface Point {
  x: number
  y: number
}

function drawBox({ title, note }: Box, { x, y }: Point): string {
  const middle = x + BOX.width / 2
  const line = note ? y + 26 : y + 35
  const second = note
    ? `<text x="${middle}" y="${y + 45}" font-size="12" fill="#475569" text-anchor="middle">${escapeXml(note)}</text>`
    : ''
  return `<rect x="${x}" y="${y}" width="${BOX.width}" height="${BOX.height}" rx="8" fill="#fff" stroke="#1a5f9c"/><text x="${middle}" y="${line}" font-size="14" font-weight="600" fill="#0f172a" text-anchor="middle">${escapeXml(title)}</text>${second}`
}

function drawArrow(from: Point, to: Point, label?: string): string {
  const isLevel = from.y === to.y
  const forward = isLevel ? from.x < to.x : from.y < to.y
  const start = isLevel
    ? { x: from.x + (forward ? BOX.width : 0), y: from.y + BOX.height / 2 }
    : { x: from.x + BOX.width / 2, y: from.y + (forward ? BOX.height : 0) }
  const end = isLevel
    ? { x: to.x + (forward ? 0 : BOX.width), y: to.y + BOX.height / 2 }
    : { x: to.x + BOX.width / 2, y: to.y + (forward ? 0 : BOX.height) }
  const middle = { x: (start.x + end.x) / 2, y: (start.y + end.y) / 2 }
  const text = label
    ? `<text x="${middle.x + (isLevel ? 0 : 8)}" y="${middle.y + (isLevel ? -8 : 4)}" font-size="12" fill="#475569" text-anchor="${isLevel ? 'middle' : 'start'}">${escapeXml(label)}</text>`
    : ''
  return `<line x1="${start.x}" y1="${start.y}" x2="${end.x}" y2="${end.y}" stroke="#475569" marker-end="url(#end)"/>${text}`
}

const escapeXml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
