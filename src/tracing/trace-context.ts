/** A trace context: the content of `traceparent` and `tracestate` (W3C Trace Context, level 1). */
export interface TraceContext {
  /** 32 lower-case hex digits, not all zero. */
  traceId: string
  /** 16 lower-case hex digits, not all zero: the parent span. */
  spanId: string
  /** Whether the sender may have recorded its span. */
  isSampled: boolean
  /** The `tracestate` of other tracing systems, unchanged; absent when there is none. */
  tracestate?: string
}

const TRACEPARENT_PATTERN = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[^,]*)?$/
const ZEROS_PATTERN = /^0+$/

/**
 * Parses the headers of a request (W3C Trace Context, 2.2 and 3.3). Undefined when `traceparent` is missing or invalid:
 * then a new trace starts and `tracestate` is ignored. An invalid `tracestate` is ignored alone.
 *
 * A higher version than 00 may add members after the flags; the known ones are parsed. A repeated header is joined by a
 * comma, which no version allows.
 *
 * Does not use OpenTelemetry's `W3CTraceContextPropagator`, for two reasons. Traces are propagated without the optional
 * packages too. And the propagator is laxer: it accepts a header with blanks around it or, in a higher version, a repeated
 * one; it propagates the valid rest of an invalid `tracestate`; and it writes flags above 0f in three digits.
 */
export function parseTraceContext(headers: {
  traceparent: string | undefined
  tracestate: string | undefined
}): TraceContext | undefined {
  const match = TRACEPARENT_PATTERN.exec(headers.traceparent ?? '')
  if (!match) return undefined
  const [, version = '', traceId = '', spanId = '', flags = '', more] = match
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (ZEROS_PATTERN.test(traceId) || ZEROS_PATTERN.test(spanId)) return undefined
  const tracestate = parseTracestate(headers.tracestate ?? '')
  return {
    traceId,
    spanId,
    isSampled: (Number.parseInt(flags, 16) & 1) === 1,
    ...(tracestate !== undefined && { tracestate }),
  }
}

/** Limits of `tracestate`: members, and propagated characters (W3C Trace Context, 3.3.1 and 3.3.1.5). */
const MAX_MEMBERS = 32
const MAX_TRACESTATE_CHARS = 512
/** A member longer than this is dropped first. */
const LARGE_MEMBER_CHARS = 128

const SIMPLE_KEY = /^[a-z][a-z0-9_*/-]{0,255}$/
const TENANT_KEY = /^[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13}$/
const VALUE = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/

/**
 * The `tracestate` to propagate: the members in their order, without blanks between them. Undefined when there is none, one
 * is invalid, a key is repeated, or there are more than 32. Beyond 512 characters whole members are dropped: large ones
 * first, then from the end, where the oldest are.
 */
export function parseTracestate(text: string): string | undefined {
  const members = text
    .split(',')
    .map(trimBlanks)
    .filter((member) => member !== '')
  if (members.length === 0 || members.length > MAX_MEMBERS || !members.every(isMember)) return undefined
  if (new Set(members.map(keyOf)).size < members.length) return undefined
  const kept = limitMembers(members)
  return kept.length === 0 ? undefined : kept.join(',')
}

/** Trims blanks and tabs, in linear time; a pattern that ends in `[ \t]+$` is quadratic. */
function trimBlanks(text: string): string {
  const isBlank = (at: number) => text[at] === ' ' || text[at] === '\t'
  let [start, end] = [0, text.length]
  while (start < end && isBlank(start)) start += 1
  while (end > start && isBlank(end - 1)) end -= 1
  return text.slice(start, end)
}

function keyOf(member: string): string {
  return member.slice(0, member.indexOf('='))
}

function isMember(member: string): boolean {
  const equals = member.indexOf('=')
  if (equals === -1) return false
  const key = member.slice(0, equals)
  return (SIMPLE_KEY.test(key) || TENANT_KEY.test(key)) && VALUE.test(member.slice(equals + 1))
}

function limitMembers(members: readonly string[]): readonly string[] {
  const isTooLong = (list: readonly string[]) => list.join(',').length > MAX_TRACESTATE_CHARS
  if (!isTooLong(members)) return members
  const kept = [...members]
  while (isTooLong(kept)) {
    const large = kept.findLastIndex((member) => member.length > LARGE_MEMBER_CHARS)
    kept.splice(large === -1 ? kept.length - 1 : large, 1)
  }
  return kept
}

/** The headers of a context (W3C Trace Context, 2.2.2 and 3.3): version 00, with only the sampled flag. */
export function buildTraceHeaders(context: TraceContext): { traceparent: string; tracestate?: string } {
  const { traceId, spanId, isSampled, tracestate } = context
  return {
    traceparent: `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`,
    ...(tracestate !== undefined && { tracestate }),
  }
}

/** Trace id, span id and flag, 25 bytes, as base64url; stored with every event. */
const STORED = /^[\w-]{34}$/

/** A context as text for a column: trace id, span id and flag in 34 characters, then `tracestate`. */
export function formatTraceContext({ traceId, spanId, isSampled, tracestate }: TraceContext): string {
  const stored = Buffer.from(`${traceId}${spanId}${isSampled ? '01' : '00'}`, 'hex').toString('base64url')
  return tracestate === undefined ? stored : `${stored} ${tracestate}`
}

/** Parses the output of `formatTraceContext`, and a `traceparent` in its place, as it was stored before; undefined for other text. */
export function parseStoredContext(text: string): TraceContext | undefined {
  const space = text.indexOf(' ')
  const first = space === -1 ? text : text.slice(0, space)
  const traceparent = STORED.test(first) ? expandStored(first) : first
  return parseTraceContext({ traceparent, tracestate: space === -1 ? undefined : text.slice(space + 1) })
}

function expandStored(stored: string): string {
  const hex = Buffer.from(stored, 'base64url').toString('hex')
  return `00-${hex.slice(0, 32)}-${hex.slice(32, 48)}-${hex.slice(48)}`
}
