import {
  checkDelivery,
  type DeliveryCheck,
  type VerificationKeys,
} from '../../../packages/webhooks/src/verify-delivery.ts'

/** A captured delivery. */
export interface Capture {
  /** By name in lower case; a repeated name keeps all its values. */
  headers: Record<string, string[]>
  body: Buffer
}

/**
 * Parses header lines, `name: value`. Accepts the output of tools: a request line or status line before them, `>` or `<` in
 * front (curl -v), CRLF, an indented continuation (RFC 9110 section 5.2) and blank lines. Throws an Error that names the
 * line.
 */
export function parseHeaderLines(text: string): Record<string, string[]> {
  const headers = createHeaders()
  let last: string[] | undefined
  for (const raw of text.split('\n')) {
    const line = raw.replace(/\r$/, '').replace(/^[<>] ?/, '')
    if (line.trim() === '' || isStartLine(line)) continue
    if (/^[ \t]/.test(line) && last) {
      last.push(`${last.pop()} ${line.trim()}`.trim())
      continue
    }
    const match = /^\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*:(.*)$/.exec(line)
    if (!match) throw new Error(`"${line.trim().slice(0, 60)}" is not a header; write name: value, one on a line`)
    const [, name = '', value = ''] = match
    last = headers[name.toLowerCase()] ??= []
    last.push(value.trim())
  }
  return headers
}

/** An object without inherited members, because a header may have any name. */
function createHeaders(): Record<string, string[]> {
  return Object.create(null)
}

function isStartLine(line: string): boolean {
  return /^[A-Z]+ \S+ HTTP\/[0-9.]+$/.test(line.trim()) || /^HTTP\/[0-9.]+ \d{3}/.test(line.trim())
}

/** Also accepts headers as a JSON object, the form that many frameworks log. */
export function parseHeadersFile(text: string): Record<string, string[]> {
  if (!text.trimStart().startsWith('{')) return parseHeaderLines(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error('it is not valid JSON; use name: value lines, or one JSON object')
  }
  const headers = createHeaders()
  for (const [name, member] of Object.entries(value as Record<string, unknown>)) {
    const key = name.toLowerCase()
    headers[key] = [...(headers[key] ?? []), ...[member].flat().map(String)]
  }
  return headers
}

/**
 * Verifies a captured delivery with the code of receivers, in every signature family with headers. Text editors and `echo`
 * append a line break that was not sent: `hasExtraLineBreak` is true when the body without it matches.
 */
export async function verifyCapture(
  capture: Capture,
  input: { keys: VerificationKeys; nowMs: number },
): Promise<DeliveryCheck & { hasExtraLineBreak?: boolean }> {
  const check = (body: Buffer) =>
    checkDelivery({ headers: capture.headers, body, ...input.keys, now: () => input.nowMs })
  const result = await check(capture.body)
  if (result.ok || result.reason !== 'signature_mismatch') return result
  const trimmed = capture.body.toString('latin1').replace(/\r?\n$/, '').length
  if (trimmed === capture.body.length) return result
  const retried = await check(capture.body.subarray(0, trimmed))
  return retried.ok ? { ...result, hasExtraLineBreak: true } : result
}
