import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { SIGNATURE_TOLERANCE_SECONDS } from '../../outbound/signature.ts'
import { findHookFault, type HookMessage, readHookKeys } from './hook-signature.ts'

const NOW = 1_700_000_000
const BODY = Buffer.from('{"a":1}')
const [KEY, OTHER] = [Buffer.from('the key of tests'), Buffer.from('another key of tests')]

const sign = (key: Buffer, { id = 'msg', timestamp = `${NOW}`, body = BODY } = {}) =>
  `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`
const find = (more: Partial<HookMessage> = {}, keys = [KEY]) =>
  findHookFault(keys, {
    ...{ id: 'msg', timestamp: `${NOW}`, signature: sign(KEY), body: BODY, now: new Date(NOW * 1000), ...more },
  })

test('a secret is base64 behind its prefix or without it, or its own bytes', () => {
  const text = KEY.toString('base64')
  expect(readHookKeys([`whsec_${text}`, text, 'plain-text', 'whsec_plain-text'])).toEqual([
    ...[KEY, KEY, Buffer.from('plain-text'), Buffer.from('plain-text')],
  ])
  // Without padding it is no base64.
  expect(readHookKeys(['YQ'])).toEqual([Buffer.from('YQ')])
  expect(readHookKeys(['YQ=='])).toEqual([Buffer.from('a')])
})

describe('a message is genuine', () => {
  test.each<[name: string, more: Partial<HookMessage>]>([
    ['by its signature', {}],
    ['by one of several', { signature: `${sign(OTHER)} v1a,x ${sign(KEY)}` }],
    ['with commas before the spaces', { signature: `${sign(OTHER)}, ${sign(KEY)},` }],
    ['at the end of its time', { now: new Date((NOW + SIGNATURE_TOLERANCE_SECONDS) * 1000 + 999) }],
    ['before its time, within the tolerance', { now: new Date((NOW - SIGNATURE_TOLERANCE_SECONDS) * 1000) }],
    ['as the last of sixteen', { signature: `${'x '.repeat(15)}${sign(KEY)}` }],
  ])('%s', (_name, more) => {
    expect(find(more)).toBeUndefined()
  })

  test('under any of the keys', () => {
    expect([find({}, [OTHER, KEY]), find({}, [KEY, OTHER])]).toEqual([undefined, undefined])
  })
})

test.each<[fault: string, name: string, more: Partial<HookMessage>]>([
  ['header_missing', 'no id', { id: null }],
  ['header_missing', 'no time', { timestamp: null }],
  ['header_missing', 'no signature', { signature: '' }],
  ['header_malformed', 'a time that is none', { timestamp: '1e9' }],
  ['header_malformed', 'a time that is too long', { timestamp: '1'.repeat(13) }],
  ['header_malformed', 'signatures of another version alone', { signature: sign(KEY).replace('v1', 'v2') }],
  ['header_malformed', 'a signature that is too short', { signature: 'v1,YQ==' }],
  ['header_malformed', 'a signature behind sixteen', { signature: `${'x '.repeat(16)}${sign(KEY)}` }],
  ['header_malformed', 'signatures that are too long', { signature: `${sign(KEY)}${' '.repeat(4_050)}` }],
  ['mismatch', 'another id', { id: 'other' }],
  ['mismatch', 'another time', { timestamp: `${NOW + 1}` }],
  ['mismatch', 'another body', { body: Buffer.from('{"a":2}') }],
  ['mismatch', 'another key', { signature: sign(OTHER) }],
  ['stale', 'a time that has passed', { now: new Date((NOW + SIGNATURE_TOLERANCE_SECONDS + 1) * 1000) }],
  ['stale', 'a time to come', { now: new Date((NOW - SIGNATURE_TOLERANCE_SECONDS - 1) * 1000) }],
])('a message is refused as %s for %s', (fault, _name, more) => {
  expect(find(more)).toBe(fault)
})

test('no key makes no message genuine', () => {
  expect(find({}, [])).toBe('mismatch')
})
