import fc from 'fast-check'

/** Characters of the small and of the large input. */
const SMALL = 1_024
const LARGE = 16_384
/** Most that the large input may cost beside the small one: sixteen times, with room for caches and collections; quadratic work is 256 times. */
const RATIO_LIMIT = 100
/** Below this the large input is linear whatever the ratio says, in milliseconds. */
const QUICK_MS = 4
/**
 * A measurement over the limits is repeated, and the least of each counts: a collection of garbage or a compilation fell into
 * the others.
 */
const TRIES = 9

/**
 * The processor time of this thread, in milliseconds: other processes take nothing from it. Linux brings the time of the
 * running thread up to date when that of its process is read, and otherwise with each tick of 4 ms.
 */
function readThreadTime(): number {
  process.cpuUsage()
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/** Processor time of this thread for `run`, in milliseconds. */
export function measureThread(run: () => void): number {
  const startedAt = readThreadTime()
  run()
  return readThreadTime() - startedAt
}

/** Processor time of this process, of all its threads, for `run`, in milliseconds. */
export async function measureProcess(run: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  await run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

/** Fails when `run` takes more than linear time of the size of its input: 16 KiB beside 1 KiB. */
export function expectLinear<Input>(build: (size: number) => Input, run: (input: Input) => void): void {
  const large = build(LARGE)
  let small: Input | undefined
  const least = { small: Number.POSITIVE_INFINITY, large: Number.POSITIVE_INFINITY }
  for (let at = 0; at < TRIES; at += 1) {
    least.large = Math.min(
      least.large,
      measureThread(() => run(large)),
    )
    if (least.large <= QUICK_MS) return
    small ??= build(SMALL)
    const given = small
    least.small = Math.min(
      least.small,
      measureThread(() => run(given)),
    )
    if (least.large <= RATIO_LIMIT * least.small) return
  }
  throw new Error(`not linear: ${SMALL} characters take ${least.small} ms, ${LARGE} take ${least.large} ms`)
}

/** Parts of texts of attackers, besides the words of the parsed language. */
const COMMON_PARTS = [
  ...' \t\r\n"\\\'`,;=&%/:.|+-_~^*#?@<>{}[]()!$aA0é',
  '\u0000',
  '\u00a0',
  '\ud800',
  '😀',
  '\u0130',
  '%2f',
  '%zz',
  '\\u0061',
]

/** A text of one repeated part between a beginning and an end: the form of what makes a backtracking parser slow. */
export function pumpedText(words: readonly string[]): fc.Arbitrary<(size: number) => string> {
  const part = fc.constantFrom(...COMMON_PARTS, ...words)
  const parts = (minLength: number, maxLength: number) =>
    fc.array(part, { minLength, maxLength }).map((list) => list.join(''))
  return fc.tuple(parts(0, 4), parts(1, 3), parts(0, 3)).map(
    ([before, pump, after]) =>
      (size) =>
        before + pump.repeat(Math.ceil(size / pump.length)) + after,
  )
}

/** Characters that regular expressions of parsers distinguish, one of each kind. */
const KINDS = [...'a0 \t\n=,.;:/%"\\-']

/**
 * The texts that backtracking parsers are known to be slow for, whatever a run draws: two characters again and again, and a
 * word of the language with each of them, between a beginning that fits and an end that does not.
 */
export function listRepeatedTexts(words: readonly string[]): ((size: number) => string)[] {
  const pairs = KINDS.flatMap((kind, at) => KINDS.slice(at).map((other) => kind + other))
  const pumps = [...pairs, ...words, ...words.flatMap((word) => KINDS.slice(0, 5).map((kind) => word + kind))]
  return pumps.map((pump, at) => {
    const before = words.length > 0 && at % 2 === 0 ? words[at % words.length]! : ''
    return (size) => `${before}${pump.repeat(Math.ceil(size / pump.length))}\u0000`
  })
}
