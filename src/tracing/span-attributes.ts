import type * as conventions from '@opentelemetry/semantic-conventions'

/** The stable attribute names of OpenTelemetry's semantic conventions. Only their types are used, so nothing is loaded. */
type ConventionalName = Extract<(typeof conventions)[Extract<keyof typeof conventions, `ATTR_${string}`>], string>

/**
 * Facts about a span. A name is one of the conventions or starts with `signalbox.`; the compiler refuses others. A value
 * that is undefined is left out. Never a body, a header, a secret, a token or a URL as it was sent.
 */
export type SpanAttributes = {
  readonly [name in ConventionalName | `signalbox.${string}`]?: string | number | boolean | undefined
}
