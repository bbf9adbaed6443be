import { expect, test } from 'vitest'
import { findResourceUrlError } from './resource-url.ts'

test.each([
  ['no URL', null],
  ['a URL with port, query and fragment', 'https://logistics.example.com:8443/shipments/S-1042?view=full#top'],
  ['a host of the same network', 'https://logistics.internal/shipments/S-1042'],
  ['an address', 'https://10.0.0.7/s'],
  ['a scheme in upper case', 'HTTPS://logistics.example.com/shipments/S-1042'],
  ['2048 characters', `https://e.example/${'p'.repeat(2048 - 18)}`],
])('takes %s', (_what, url) => {
  expect(findResourceUrlError(url)).toBeUndefined()
})

test.each([
  ['2049 characters', `https://e.example/${'p'.repeat(2049 - 18)}`, 'url_too_long'],
  ['a path', '/shipments/S-1042', 'url_invalid'],
  ['a host without a scheme', 'logistics.example.com/s', 'url_invalid'],
  ['no host', 'https://', 'url_invalid'],
  ['plain http', 'http://logistics.example.com/s', 'url_not_https'],
  ['a script', 'javascript:alert(1)', 'url_not_https'],
  ['a name', 'https://me@logistics.example.com/s', 'url_has_user_info'],
  ['a password', 'https://:word@logistics.example.com/s', 'url_has_user_info'],
  ['a space around it', ' https://logistics.example.com/s', 'url_invalid'],
  ['a line break inside', 'https://logistics.example.com/s\nx: y', 'url_invalid'],
  ['backslashes', 'https:\\\\logistics.example.com\\s', 'url_invalid'],
  ['a scheme without slashes', 'https:logistics.example.com', 'url_invalid'],
])('refuses %s', (_what, url, code) => {
  expect(findResourceUrlError(url)).toMatchObject({ path: 'url', code })
})
