import type * as conventions from '@opentelemetry/semantic-conventions'

/** The stable attribute names of OpenTelemetry's semantic conventions. Only their types are used, so nothing is loaded. */
type ConventionalName = Extract<(typeof conventions)[Extract<keyof typeof conventions, `ATTR_${string}`>], string>

/** Attributes of a span, named by the conventions or `signalbox.`. Never a body, header, secret, token or full URL. */
export type SpanAttributes = {
  readonly [name in ConventionalName | `signalbox.${string}`]?: string | number | boolean | undefined
}
