import fc from 'fast-check'
import Pusher from 'pusher'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../../test/harness/run/any-text.ts'
import { systemRandom } from '../../base/random.ts'
import { CHANNEL_NAME_LIMIT, parseChannelName } from './frame/channel-name.ts'
import { parseClientFrame, readChannelData, readUserData } from './frame/client-frame.ts'
import { CLOSE_REASONS, classifyVersion } from './frame/close-reason.ts'
import { encodeTextFrame, writeEvent, writeHello, writeSubscribed } from './frame/server-frame.ts'
import {
  buildRequestText,
  buildSigninText,
  buildSubscriptionText,
  classifyToken,
  signText,
  verifyBodyDigest,
  verifySignature,
} from './frame/signature.ts'
import { isSocketId, makeSocketId } from './frame/socket-id.ts'

const app = { id: '3', key: '278d425bdf160c739803', secret: '7ad3773142a6692b25b8' }
const official = new Pusher({ appId: app.id, key: app.key, secret: app.secret, host: '127.0.0.1', useTLS: false })
const nameUnit = fc.constantFrom(...'ABCxyz019_-=@,.;'.split(''))
const channelNames = fc.string({ unit: nameUnit, minLength: 1, maxLength: CHANNEL_NAME_LIMIT })
const socketIds = fc.tuple(fc.nat(), fc.nat()).map(([first, other]) => `${first}.${other}`)

describe('a channel name', () => {
  test.each([
    ['news', 'public', false],
    ['cache-news', 'public', true],
    ['private-a', 'private', false],
    ['private-cache-a', 'private', true],
    ['private-encrypted-a', 'encrypted', false],
    ['private-encrypted-cache-a', 'encrypted', true],
    ['presence-a', 'presence', false],
    ['presence-cache-a', 'presence', true],
    ['__proto__', 'public', false],
  ])('%s is %s, cached %s', (name, kind, isCache) => {
    expect(parseChannelName(name)).toEqual({ name, kind, isCache })
  })

  test.each([
    '',
    'a b',
    'a:b',
    'a\n',
    'private-a\n',
    '#a',
    '#server-to-user-',
    '#server-to-user-a\n',
    'private-ａ',
    ':user::{"id":"victim"}',
    'x'.repeat(CHANNEL_NAME_LIMIT + 1),
    ['a'],
    null,
    5,
  ])('%j is refused', (name) => {
    expect(parseChannelName(name)).toBeUndefined()
  })

  test('of a user names the user', () => {
    expect(parseChannelName('#server-to-user-a b/c')).toMatchObject({ kind: 'user', userId: 'a b/c' })
  })

  test('is valid exactly when the official library accepts it, up to the length of the protocol', () => {
    const texts = fc.oneof(channelNames, fc.string({ maxLength: 20 }), fc.string({ unit: anyCharacter, maxLength: 5 }))
    fc.assert(
      fc.property(texts, (name) => {
        if (name.startsWith('private-encrypted-')) return
        const isAccepted = (() => {
          try {
            official.authorizeChannel('1.1', name)
            return true
          } catch {
            return false
          }
        })()
        expect(parseChannelName(name) !== undefined).toBe(isAccepted)
      }),
    )
  })
})

describe('a socket id', () => {
  test.each(['1.2', '123456789012.98765'])('%s is valid', (id) => expect(isSocketId(id)).toBe(true))

  test.each(['', '1', '1.', '.1', '1.1\n', '1.1:x', '１.1', `${'1'.repeat(21)}.1`, ['1.1'], undefined])(
    '%j is refused',
    (id) => expect(isSocketId(id)).toBe(false),
  )

  test('that the server makes is valid, and no two are equal', () => {
    const made = Array.from({ length: 1_000 }, () => makeSocketId(systemRandom))
    expect(made.every(isSocketId)).toBe(true)
    expect(new Set(made).size).toBe(made.length)
  })
})

describe('a signature', () => {
  test('equals the examples of the protocol', () => {
    const subscription = signText(app.secret, buildSubscriptionText('1234.1234', 'private-foobar'))
    expect(subscription).toBe('58df8b0c36d6982b82c3ecf6b4662e34fe8c25bba48f5369f135bf843651c3a4')
    const signin = signText(app.secret, buildSigninText('1234.1234', '{"id":"12345"}'))
    expect(signin).toMatch(/^4708d583.*336ba$/)
  })

  test('of the official library is valid for its channel, socket, data and key, and for nothing else', () => {
    fc.assert(
      fc.property(channelNames, socketIds, fc.option(fc.string(), { nil: undefined }), (channel, socketId, user) => {
        if (channel.startsWith('private-encrypted-')) return
        const data = user === undefined ? undefined : { user_id: user }
        const { auth, channel_data } = official.authorizeChannel(socketId, channel, data as never)
        const text = buildSubscriptionText(socketId, channel, channel_data)
        expect(classifyToken(app, auth, text)).toBe('valid')
        expect(classifyToken(app, auth, buildSubscriptionText(`${socketId}0`, channel, channel_data))).toBe(
          'wrong-signature',
        )
        expect(classifyToken(app, auth, buildSubscriptionText(socketId, `${channel}x`, channel_data))).toBe(
          'wrong-signature',
        )
        expect(classifyToken({ ...app, key: `${app.key}0` }, auth, text)).toBe('wrong-key')
        expect(classifyToken({ ...app, secret: 'other' }, auth, text)).toBe('wrong-signature')
      }),
      { numRuns: 50 },
    )
  })

  test('of a sign-in is that of the official library', () => {
    const { auth, user_data } = official.authenticateUser('1.2', { id: 'u1' })
    expect(classifyToken(app, auth, buildSigninText('1.2', user_data))).toBe('valid')
  })

  test('of a subscription is never that of a sign-in', () => {
    fc.assert(
      fc.property(channelNames, socketIds, fc.string(), (channel, socketId, userData) => {
        expect(buildSubscriptionText(socketId, channel)).not.toBe(buildSigninText(socketId, userData))
        expect(buildSubscriptionText(socketId, channel, userData)).not.toBe(buildSigninText(socketId, userData))
      }),
    )
  })

  test.each(['', 'x', ':', `${app.key}`, `${app.key}:`, `${app.key}:${'0'.repeat(64)}`, '__proto__:x'])(
    'the token %j is not valid',
    (token) => expect(classifyToken(app, token, '1.1:private-a')).not.toBe('valid'),
  )

  test('of a request of the official library is valid over method, path and parameters in any order', () => {
    const body = '{"name":"e"}'
    const query = official.createSignedQueryString({
      method: 'POST',
      path: '/apps/3/events',
      body,
      params: { b: '1', a: 'x=y' },
    })
    const pairs = query.split('&').map((pair): [string, string] => {
      const at = pair.indexOf('=')
      return [pair.slice(0, at), pair.slice(at + 1)]
    })
    const parameters = new Map(pairs.reverse())
    const text = buildRequestText('post', '/apps/3/events', parameters)
    expect(verifySignature(app.secret, text, parameters.get('auth_signature')!)).toBe(true)
    expect(verifyBodyDigest(Buffer.from(body), parameters.get('body_md5')!)).toBe(true)
    expect(verifyBodyDigest(Buffer.from(`${body} `), parameters.get('body_md5')!)).toBe(false)
    const other = buildRequestText('post', '/apps/4/events', parameters)
    expect(verifySignature(app.secret, other, parameters.get('auth_signature')!)).toBe(false)
  })
})

describe('a frame of a client', () => {
  test('that is not a JSON object with an event is a fault, and nothing throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        expect(['fault', 'ping', 'pong']).toContain(parseClientFrame(text).kind)
      }),
    )
  })

  test('with any members is read without an exception, and its texts are texts', () => {
    const values = fc.oneof(fc.string(), fc.jsonValue())
    const events = fc.constantFrom(
      'pusher:subscribe',
      'pusher:unsubscribe',
      'pusher:signin',
      'client-x',
      'pusher:other',
    )
    const data = fc.oneof(
      values,
      fc.record({ channel: values, auth: values, channel_data: values, user_data: values }, { requiredKeys: [] }),
    )
    fc.assert(
      fc.property(events, data, values, (event, inner, channel) => {
        const { kind, ...rest } = parseClientFrame(JSON.stringify({ event, data: inner, channel }))
        expect(kind).toBeTypeOf('string')
        for (const value of Object.values(rest)) expect(['string', 'undefined']).toContain(typeof value)
      }),
    )
  })

  test('keeps the text of a client event, and writes all else as JSON', () => {
    const read = (data: unknown) => parseClientFrame(JSON.stringify({ event: 'client-x', channel: 'private-a', data }))
    expect(read('{"a":1}')).toMatchObject({ kind: 'client-event', data: '{"a":1}' })
    expect(read({ a: 1 })).toMatchObject({ data: '{"a":1}' })
    expect(read(undefined)).toMatchObject({ data: 'null' })
    expect(parseClientFrame(`{"event":"client-${'x'.repeat(200)}","channel":"private-a"}`).kind).toBe('fault')
  })

  test('names its user by a text or a number', () => {
    expect(readChannelData('{"user_id":7,"user_info":{"a":1}}')).toEqual({ id: '7', info: { a: 1 } })
    expect(readUserData('{"id":"u"}')).toEqual({ id: 'u', info: undefined })
    for (const text of ['', '[]', '{}', '{"user_id":{}}', 'null']) expect(readChannelData(text)).toBeUndefined()
    for (const text of ['', '[]', '{}', '{"id":7}', 'null']) expect(readUserData(text)).toBeUndefined()
  })
})

describe('a frame of the server', () => {
  test('carries its data as a string that holds JSON', () => {
    const hello = JSON.parse(writeHello('1.2', 120))
    expect(JSON.parse(hello.data)).toEqual({ socket_id: '1.2', activity_timeout: 120 })
    expect(JSON.parse(writeEvent({ event: 'e', channel: 'c', data: '{"a":1}' }))).toEqual({
      event: 'e',
      channel: 'c',
      data: '{"a":1}',
    })
  })

  test('lists members by any id, also one that is a name of the prototype', () => {
    const ids = ['__proto__', 'constructor', 'u']
    const frame = JSON.parse(
      writeSubscribed(
        'presence-a',
        ids.map((id) => ({ id, info: { id } })),
      ),
    )
    const { presence } = JSON.parse(frame.data)
    expect(presence).toMatchObject({ ids, count: 3 })
    expect(Object.keys(presence.hash)).toEqual(ids)
  })

  test('is encoded with the length that RFC 6455 gives it', () => {
    for (const length of [0, 125, 126, 65_535, 65_536, 100_000]) {
      const text = 'x'.repeat(length)
      const frame = encodeTextFrame(text)
      const head = length < 126 ? 2 : length < 65_536 ? 4 : 10
      expect(frame.length).toBe(head + length)
      expect(frame.subarray(head).toString()).toBe(text)
      const stated = head === 2 ? frame[1] : head === 4 ? frame.readUInt16BE(2) : Number(frame.readBigUInt64BE(2))
      expect(stated).toBe(length)
    }
    expect(encodeTextFrame('€')[1]).toBe(3)
  })
})

describe('closing', () => {
  test.each([
    [null, 'missing-version'],
    ['', 'missing-version'],
    ['7.1', 'invalid-version'],
    ['x', 'invalid-version'],
    ['99999', 'invalid-version'],
    ['4', 'unsupported-version'],
    ['8', 'unsupported-version'],
    ['7', undefined],
    ['5', undefined],
  ])('protocol %j: %s', (protocol, verdict) => expect(classifyVersion(protocol)).toBe(verdict))

  test('has reasons that fit into a close frame, and no code that lets a crowd return at once', () => {
    for (const [name, { code, reason }] of Object.entries(CLOSE_REASONS)) {
      expect(Buffer.byteLength(reason)).toBeLessThanOrEqual(123)
      if (name !== 'no-pong') expect(code < 4200 || code > 4299).toBe(true)
    }
  })
})
