/** Different bytes at least. Of 24 random bytes some 23 differ; of 32 random hexadecimal digits some 14. */
export const LEAST_DIFFERENT = 10

/** Whether bytes are obviously not random. Pure. */
export function isWeak(bytes: Buffer): boolean {
  if (new Set(bytes).size < LEAST_DIFFERENT) return true
  const step = (index: number) => ((bytes[index] as number) - (bytes[index - 1] as number)) & 0xff
  const indexes = Array.from(bytes.keys())
  if (indexes.slice(2).every((index) => step(index) === step(1))) return true
  const periods = indexes.slice(1, Math.floor(bytes.length / 2) + 1)
  return periods.some((period) => indexes.slice(period).every((index) => bytes[index] === bytes[index - period]))
}
