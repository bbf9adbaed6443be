/** Messages that a tab keeps at most. */
export const KEPT = 500

/** A line of the message table. */
export interface Line {
  id: number
  /** ISO 8601, UTC. */
  at: string
  direction: 'in' | 'out' | 'connection'
  channel: string
  event: string
  /** Of the data as JSON, in UTF-8. */
  bytes: number
  data: unknown
}

const CHANNEL = /^private-(?:account|contract)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Whether a name is that of a private channel (docs/contract/realtime.md#channels). Pure. */
export const isChannelName = (name: string) => CHANNEL.test(name)

/** Adds a line before the others; beyond the limit the oldest one goes. Pure. */
export function addLine(lines: readonly Line[], line: Line): Line[] {
  return [line, ...lines].slice(0, KEPT)
}

/** The lines that hold a text in channel, event or data. Pure. */
export function filterLines(lines: readonly Line[], text: string): Line[] {
  const wanted = text.trim().toLowerCase()
  if (wanted === '') return [...lines]
  return lines.filter((line) =>
    `${line.channel} ${line.event} ${JSON.stringify(line.data)}`.toLowerCase().includes(wanted),
  )
}

/** The lines as NDJSON, the oldest first. Pure. */
export function toNdjson(lines: readonly Line[]): string {
  return lines
    .toReversed()
    .map(({ id: _, ...line }) => `${JSON.stringify(line)}\n`)
    .join('')
}
