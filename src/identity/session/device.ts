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

/** The program and the system by the `User-Agent` header, which proves nothing. `app`: no browser. Pure. */
export function recognizeDevice(userAgent: string | null): { program: string | null; system: string | null } {
  if (userAgent === null) return { program: null, system: null }
  return { program: findName(PROGRAMS, userAgent) ?? null, system: findName(SYSTEMS, userAgent) ?? null }
}

/** A name of a device from its `User-Agent` header, which proves nothing: `Firefox on Windows`. Pure. */
export function nameDevice(userAgent: string | null): string | null {
  const { program: found, system } = recognizeDevice(userAgent)
  const program = found === 'app' ? 'An app' : found
  if (program && system) return `${program} on ${system}`
  return program ?? system ?? null
}
