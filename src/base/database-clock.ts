import { adoptClock, type Clock, machineClock, readMonotonicMs } from './clock.ts'

/** Skew above which a process reports that its machine's clock is wrong, in milliseconds. */
export const SKEW_REPORTED_MS = 2_000

/** Skew above which a process trusts neither clock: it claims nothing, takes nothing back, deletes nothing. Milliseconds. */
export const SKEW_TRUSTED_MS = 10_000

/** Maximum drift between the clocks of two machines, as a fraction of the elapsed time: 200 ppm. */
const DRIFT = 0.0002

/** A backward correction below this stops the clock instead, so that no duration is negative. Milliseconds. */
const HELD_MS = 1_000

/** A correction of more than this is a step of the database's clock (or the end of a suspension), and is reported. Milliseconds. */
const STEP_MS = 2_000

/** Time without deletions after a step of the database's clock, in which an operator can notice it. Milliseconds. */
const STEP_REST_MS = 600_000

/** One sample of the database's clock. */
export interface ClockSample {
  /** Times of sending the query and of reading its answer, in monotonic milliseconds of this process. */
  sentAtMs: number
  receivedAtMs: number
  /** Time of the database's clock, in milliseconds since the Unix epoch. */
  databaseMs: number
}

/** Effect of the skew between the clocks of machine and database on the work of a process. */
export type ClockVerdict = 'aligned' | 'skewed' | 'distrusted'

/** The clock of the database, extrapolated by a process between samples (docs/decisions/0029-one-clock.md). */
export interface DatabaseClock extends Clock {
  /** Monotonic milliseconds, by which samples are measured. */
  monotonicMs(): number
  /** Applies a sample. Samples with a larger uncertainty than the current offset change nothing. */
  observe(sample: ClockSample): void
  /** Lead of the machine's clock over the database's, in milliseconds; negative: behind. 0 before the first sample. */
  skewMs(): number
  verdict(): ClockVerdict
  /** Milliseconds since the last sample. */
  sampleAgeMs(): number
  /** Milliseconds since the last detected step of the database's clock; Infinity without one. */
  stepAgeMs(): number
  /** Size of that step, in milliseconds; negative: back. */
  stepMs(): number
}

/** Measured offset between the database's clock and the monotonic one, with its uncertainty. */
export interface ClockEstimate {
  /** Add it to monotonic milliseconds. */
  offsetMs: number
  /** Maximum error of the offset at `atMs`. */
  errorMs: number
  /** Monotonic. */
  atMs: number
}

/**
 * Combines the known offset with a sample: the database read its clock between the sending of the query and the arrival
 * of the answer, most likely halfway. A more exact sample replaces the offset, and so does one that contradicts it (a
 * step of the database's clock); a slow one is ignored. Pure.
 */
export function combine(
  known: ClockEstimate | undefined,
  sample: ClockSample,
): { next: ClockEstimate; isStep: boolean } {
  const { sentAtMs, receivedAtMs, databaseMs } = sample
  const errorMs = Math.max(0, receivedAtMs - sentAtMs) / 2
  const seen = { offsetMs: databaseMs - (sentAtMs + receivedAtMs) / 2, errorMs, atMs: receivedAtMs }
  if (!known) return { next: seen, isStep: false }
  const knownErrorMs = growError(known, receivedAtMs)
  const differenceMs = Math.abs(seen.offsetMs - known.offsetMs)
  // The database gives microseconds, the process milliseconds.
  if (differenceMs > errorMs + knownErrorMs + 1) return { next: seen, isStep: differenceMs >= STEP_MS }
  return { next: errorMs < knownErrorMs ? seen : known, isStep: false }
}

/** The error of an estimate at a later time. Pure. */
function growError({ errorMs, atMs }: ClockEstimate, nowMs: number): number {
  return errorMs + Math.max(0, nowMs - atMs) * DRIFT
}

/** Classifies a skew that is known to within `errorMs`. Pure. */
export function judgeSkew(skewMs: number, errorMs: number): ClockVerdict {
  const certainMs = Math.abs(skewMs) - errorMs
  if (certainMs > SKEW_TRUSTED_MS) return 'distrusted'
  return certainMs > SKEW_REPORTED_MS ? 'skewed' : 'aligned'
}

/** Follows the database's clock; in between counts on by the monotonic clock. Until the first sample the machine's. */
export function followDatabaseClock(machine: Clock, monotonicMs: () => number): DatabaseClock {
  let known: ClockEstimate | undefined
  let sampledAtMs = Number.NEGATIVE_INFINITY
  let stepped = { atMs: Number.NEGATIVE_INFINITY, byMs: 0 }
  let lastMs = Number.NEGATIVE_INFINITY

  const read = (estimate: ClockEstimate) => Math.floor(monotonicMs() + estimate.offsetMs)
  const skewMs = () => (known ? machine.now() - read(known) : 0)

  return {
    now: () => {
      if (!known) return machine.now()
      const nowMs = read(known)
      lastMs = nowMs < lastMs && lastMs - nowMs < HELD_MS ? lastMs : nowMs
      return lastMs
    },
    sleep: machine.sleep,
    monotonicMs,
    observe: (sample) => {
      if (!Number.isFinite(sample.databaseMs)) return
      const { next, isStep } = combine(known, sample)
      if (isStep && known) stepped = { atMs: sample.receivedAtMs, byMs: next.offsetMs - known.offsetMs }
      known = next
      sampledAtMs = sample.receivedAtMs
    },
    skewMs,
    verdict: () => (known ? judgeSkew(skewMs(), growError(known, monotonicMs())) : 'aligned'),
    sampleAgeMs: () => monotonicMs() - sampledAtMs,
    stepAgeMs: () => monotonicMs() - stepped.atMs,
    stepMs: () => stepped.byMs,
  }
}

/**
 * Whether a process may delete expired rows. False while it trusts no clock, and for ten minutes after a step of the
 * database's clock: with both on one machine, nothing else shows that the time is wrong. Always true without a clock
 * that follows the database.
 */
export function mayDelete(time: Pick<DatabaseClock, 'verdict' | 'stepAgeMs'> | undefined): boolean {
  return time === undefined || (time.verdict() !== 'distrusted' && time.stepAgeMs() >= STEP_REST_MS)
}

/** Makes every reader of the time in this process follow the database's clock (`adoptClock`), until `restore`. */
export function adoptDatabaseClock(machine: Clock = machineClock): { time: DatabaseClock; restore: () => void } {
  const time = followDatabaseClock(machine, readMonotonicMs)
  return { time, restore: adoptClock(time) }
}
