/** Programs by a word of their user agent; the first that matches counts, because many name others too. */
const PROGRAMS: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\b(?:OPR|Opera)\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\bVivaldi\//, 'Vivaldi'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Chrome|CriOS|Chromium|HeadlessChrome)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
  [/\bcurl\//, 'curl'],
  [/\b(?:okhttp|Dart|CFNetwork|python-requests|node|undici|axios|Go-http-client|Java)\b/i, 'app'],
]

const SYSTEMS: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bWindows\b/, 'Windows'],
  [/\b(?:Macintosh|Mac OS X)\b/, 'macOS'],
  [/\bLinux\b/, 'Linux'],
]

const findName = (names: typeof PROGRAMS, text: string) => names.find(([pattern]) => pattern.test(text))?.[1]

/**
 * The program and the system of a device by its `User-Agent` header. The header is set by the client, and proves
 * nothing. `app` is a program other than a browser. Pure.
 */
export function recognizeDevice(userAgent: string | null): { program: string | null; system: string | null } {
  if (userAgent === null) return { program: null, system: null }
  return { program: findName(PROGRAMS, userAgent) ?? null, system: findName(SYSTEMS, userAgent) ?? null }
}

/**
 * A name of a device that its owner recognizes, from the `User-Agent` header: `Firefox on Windows`. The header is set
 * by the client, and proves nothing. Null for an unknown one. Pure.
 */
export function nameDevice(userAgent: string | null): string | null {
  const { program: found, system } = recognizeDevice(userAgent)
  const program = found === 'app' ? 'An app' : found
  if (program && system) return `${program} on ${system}`
  return program ?? system ?? null
}
