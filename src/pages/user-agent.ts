/** Browsers by a mark of their `User-Agent`. The first match counts: most of them also name Chrome or Safari. */
const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdgA?(?:iOS)?\//, 'Edge'],
  [/\bOPR\/|\bOpera\b/, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\bVivaldi\//, 'Vivaldi'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Headless)?Chrom(?:e|ium)\/|\bCriOS\//, 'Chrome'],
  [/\bVersion\/[\d.]+ .*Safari\//, 'Safari'],
]

/** Systems by a mark, with the kind of device. Android names Linux, and an iPhone names Mac OS X. */
const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac(?:intosh| OS X)\b/, 'macOS'],
  [/\bLinux\b/, 'Linux'],
]

/** What a person calls the program behind a `User-Agent`: `Chrome on Windows`. Programs without a known mark are named plainly. */
export function describeUserAgent(userAgent: string | null): string {
  const find = (list: readonly (readonly [RegExp, string])[]) => list.find(([mark]) => mark.test(userAgent ?? ''))?.[1]
  const [browser, system] = [find(BROWSERS), find(SYSTEMS)]
  if (browser && system) return `${browser} on ${system}`
  if (browser ?? system) return browser ?? `A browser on ${system}`
  return userAgent ? 'An app or a program' : 'Unknown device'
}

/** Whether a `User-Agent` names a phone or a tablet. */
export function isPhone(userAgent: string | null): boolean {
  return /\b(?:iPhone|iPad|Android|Mobile)\b/.test(userAgent ?? '')
}
