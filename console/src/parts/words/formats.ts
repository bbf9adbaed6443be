const kept = new Map<string, unknown>()

/** To make a formatter of `Intl` takes a hundred times as long as to use it, so each is made once. */
function keep<Format>(key: readonly unknown[], make: () => Format): Format {
  const text = JSON.stringify(key)
  const format = (kept.get(text) as Format | undefined) ?? make()
  kept.set(text, format)
  return format
}

/** Formats numbers. */
export const numberFormat = (language: string, options?: Intl.NumberFormatOptions) =>
  keep(['number', language, options], () => new Intl.NumberFormat(language, options))

/** Formats instants. */
export const dateFormat = (language: string, options?: Intl.DateTimeFormatOptions) =>
  keep(['date', language, options], () => new Intl.DateTimeFormat(language, options))

/** Formats the distance of an instant from now. */
export const ageFormat = (language: string, options?: Intl.RelativeTimeFormatOptions) =>
  keep(['age', language, options], () => new Intl.RelativeTimeFormat(language, options))

/** Formats alternatives: `a, b or c`. */
export const orFormat = (language: string) =>
  keep(['or', language], () => new Intl.ListFormat(language, { type: 'disjunction' }))
