import { expect, test } from 'vitest'
import { frameAncestors } from './config-parsers.ts'

test.each([
  ['https://app.example.com', ['https://app.example.com']],
  ['https://app.example.com, https://*.example.org', ['https://app.example.com', 'https://*.example.org']],
  ['https://app.example.com:8443', ['https://app.example.com:8443']],
  ['http://localhost:3000,http://127.0.0.1:4004', ['http://localhost:3000', 'http://127.0.0.1:4004']],
  ['', []],
])('PORTAL_FRAME_ANCESTORS takes %j', (value, wanted) => {
  expect(frameAncestors(value)).toEqual(wanted)
})

test.each([
  '*',
  'https:',
  "'self'",
  "'none'",
  'https://*',
  'https://*.com',
  'https://app.*.example.com',
  'https://*.*.example.com',
  'http://app.example.com',
  'http://*.localhost',
  'https://app.example.com/',
  'https://app.example.com/path',
  'https://App.example.com',
  'https://user@app.example.com',
  'https://app.example.com; script-src *',
  'https://app.example.com https://evil.example',
  'javascript:alert(1)',
  'app.example.com',
])('PORTAL_FRAME_ANCESTORS refuses %j, and never repeats it', (value) => {
  expect(() => frameAncestors(value)).toThrow(/^must list https:\/\/ origins/)
})
