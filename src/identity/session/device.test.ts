import { expect, test } from 'vitest'
import { nameDevice } from './device.ts'

const APPLE = 'AppleWebKit/605.1.15 (KHTML, like Gecko)'

test.each([
  ['Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:130.0) Gecko/20100101 Firefox/130.0', 'Firefox on Windows'],
  [`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${APPLE} Version/17.4 Safari/605.1.15`, 'Safari on macOS'],
  [
    `Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) ${APPLE} Version/17.4 Mobile Safari/604.1`,
    'Safari on iPhone',
  ],
  ['Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/126.0.0.0 Mobile Safari/537.36', 'Chrome on Android'],
  ['Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/126.0.0.0 Safari/537.36', 'Chrome on Linux'],
  ['Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/126.0 Safari/537.36 Edg/126.0', 'Edge on Windows'],
  ['curl/8.6.0', 'curl'],
  ['okhttp/4.12.0', 'An app'],
  ['Mozilla/5.0', null],
  ['', null],
  [null, null],
])('the user agent %j is named %j', (userAgent, name) => {
  expect(nameDevice(userAgent)).toBe(name)
})
