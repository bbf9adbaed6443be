import { describe, expect, test } from 'vitest'
import { describeAge } from './age.ts'
import { describeUserAgent } from './user-agent.ts'

describe('a device', () => {
  const webkit = 'AppleWebKit/537.36 (KHTML, like Gecko)'
  test.each([
    [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webkit} Chrome/140.0.0.0 Safari/537.36`, 'Chrome on Windows'],
    [
      `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webkit} Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0`,
      'Edge on Windows',
    ],
    [`Mozilla/5.0 (X11; Linux x86_64) ${webkit} HeadlessChrome/140.0.0.0 Safari/537.36`, 'Chrome on Linux'],
    ['Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:143.0) Gecko/20100101 Firefox/143.0', 'Firefox on macOS'],
    [
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15',
      'Safari on macOS',
    ],
    [
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1',
      'Safari on iPhone',
    ],
    [
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0 Mobile/15E148 Safari/604.1',
      'Chrome on iPhone',
    ],
    [
      `Mozilla/5.0 (Linux; Android 10; K) ${webkit} SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36`,
      'Samsung Internet on Android',
    ],
    [`Mozilla/5.0 (Linux; Android 10; K) ${webkit} Chrome/140.0.0.0 Mobile Safari/537.36 OPR/90.0`, 'Opera on Android'],
    [`Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) ${webkit} Chrome/140.0.0.0 Safari/537.36`, 'Chrome on ChromeOS'],
    ['curl/8.14.1', 'An app or a program'],
    ['Something (Windows)', 'A browser on Windows'],
    ['', 'Unknown device'],
    [null, 'Unknown device'],
  ])('with the user agent %j is called %s', (userAgent, words) => {
    expect(describeUserAgent(userAgent)).toBe(words)
  })
})

describe('an age', () => {
  const now = new Date('2026-11-21T12:00:00Z')
  test.each([
    ['2026-11-21T12:00:05Z', 'just now'],
    ['2026-11-21T11:59:01Z', 'just now'],
    ['2026-11-21T11:59:00Z', '1 minute ago'],
    ['2026-11-21T11:01:00Z', '59 minutes ago'],
    ['2026-11-21T10:00:00Z', '2 hours ago'],
    ['2026-11-20T12:00:00Z', '1 day ago'],
    ['2026-11-08T12:00:00Z', '13 days ago'],
    ['2026-11-07T12:00:00Z', 'on 7 November 2026'],
  ])('of %s is %s', (at, words) => {
    expect(describeAge(new Date(at), now)).toBe(words)
  })
})
