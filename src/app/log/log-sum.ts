import type { LoggerOptions } from 'pino'

/** The lines of which there is one for each success: at a high rate they are summed. */
const SUMMED = new Set(['request', 'attempt', 'provisioning attempt', 'realtime attempt'])

/** The number of pino's level `info`. */
const INFO = 30

interface Sum {
  lines: number
  durationMs: number
  longestMs: number
}

/** Sums the lines of successes above a rate. */
export interface SuccessSum {
  /** Whether a line is written; otherwise it is summed. */
  accept(line: { level: number; message: unknown; fields: unknown }): boolean
  /** Lines that were summed since the start. */
  summed(): number
}

/**
 * Builds the sum. Of each kind `perSecond` lines of successes are written in a second; those beyond are counted, and
 * `report` gets their sum at the end of the second. Failures are never summed: they have another level, an error, or a
 * status of 400 or more.
 */
export function buildSuccessSum(options: {
  /** 0: every line is written. */
  perSecond: number
  monotonicMs: () => number
  /** Resolves after a second. */
  restSecond: () => Promise<unknown>
  report: (fields: { of: string; lines: number; mean_duration_ms: number; longest_duration_ms: number }) => void
}): SuccessSum {
  const { perSecond, monotonicMs, restSecond, report } = options
  let second = -1
  let written = new Map<string, number>()
  let sums = new Map<string, Sum>()
  let summed = 0

  function reportSums(): void {
    const ended = sums
    sums = new Map()
    for (const [of, { lines, durationMs, longestMs }] of ended)
      report({ of, lines, mean_duration_ms: Math.round(durationMs / lines), longest_duration_ms: longestMs })
  }

  function add(kind: string, durationMs: number): void {
    if (sums.size === 0) void restSecond().then(reportSums)
    const sum = sums.get(kind) ?? { lines: 0, durationMs: 0, longestMs: 0 }
    sums.set(kind, {
      lines: sum.lines + 1,
      durationMs: sum.durationMs + durationMs,
      longestMs: Math.max(sum.longestMs, durationMs),
    })
    summed += 1
  }

  return {
    accept: ({ level, message, fields }) => {
      if (perSecond === 0 || level !== INFO || typeof message !== 'string' || !SUMMED.has(message)) return true
      const { status, error, duration_ms: durationMs } = (fields ?? {}) as Record<string, unknown>
      if ((typeof status === 'number' && status >= 400) || (error !== undefined && error !== null)) return true
      const now = Math.floor(monotonicMs() / 1_000)
      if (now !== second) {
        second = now
        written = new Map()
      }
      const count = (written.get(message) ?? 0) + 1
      written.set(message, count)
      if (count <= perSecond) return true
      add(message, typeof durationMs === 'number' ? durationMs : 0)
      return false
    },
    summed: () => summed,
  }
}

/** The option of a logger that omits the lines that are summed. */
export function buildSumHook(sum: SuccessSum): NonNullable<LoggerOptions['hooks']> {
  return {
    logMethod(inputs, method, level) {
      const [fields, message] = inputs as unknown as [unknown, unknown]
      if (sum.accept({ level, message, fields })) method.apply(this, inputs)
    },
  }
}
