/** One environment variable with a strict parser. */
export interface Variable<Value> {
  /** Parses the text. Throws an Error whose message completes "<NAME> ...". */
  parse: (text: string) => Value
  /** The description in `.env.example` and the docs. */
  meaning: string
  /** The default in words; `readConfig` decides the value. */
  fallback: string
  /** Whether the value must never be printed. */
  secret?: boolean
}

/** Declares a variable. */
export function variable<Value>(parse: (text: string) => Value, fallback: string, meaning: string): Variable<Value> {
  return { parse, fallback, meaning }
}

/** Declares a variable whose value must never be printed. */
export function secretVariable<Value>(
  parse: (text: string) => Value,
  fallback: string,
  meaning: string,
): Variable<Value> {
  return { parse, fallback, meaning, secret: true }
}
