import type * as conventions from '@opentelemetry/semantic-conventions'

/** The stable attribute names of OpenTelemetry's semantic conventions. Only their types are used, so nothing is loaded. */
type ConventionalName = Extract<(typeof conventions)[Extract<keyof typeof conventions, `ATTR_${string}`>], string>

/**
 * The attributes of a span. A name is one of the conventions or starts with `signalbox.`; the compiler refuses others.
 * Undefined values are left out. Never a body, a header, a secret, a token or a full URL.
 */
export type SpanAttributes = {
  readonly [name in ConventionalName | `signalbox.${string}`]?: string | number | boolean | undefined
}
