import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { serveProvider } from './provider-mount.ts'
import { PROVIDER_PATH } from './provider-source.ts'

const FORM = 'application/x-www-form-urlencoded'
const LIMIT = 8_192

/** A request of a client: its body comes in these pieces. */
interface Sent {
  url?: string
  method?: string
  type?: string
  body?: readonly string[]
  /** How the client ends it instead of with its last byte. */
  fault?: 'error' | 'close' | 'never'
  baseUrl?: string
}

/** A request as the provider gets it; its body where the mount has read it. */
type Served = Pick<IncomingMessage, 'url' | 'headers'> & { originalUrl: string; iterator?: () => Buffer[] }

/** The answer of the mount, or the request as the provider gets it. */
async function send({ url = '/token', method = 'POST', type = FORM, body = [], fault, baseUrl }: Sent) {
  const stream = new Readable({ read() {} })
  for (const piece of body) stream.push(piece)
  if (fault === 'error') stream.destroy(new Error('reset'))
  else if (fault === 'close') stream.destroy()
  else if (fault !== 'never') stream.push(null)
  const headers: Record<string, string> = {
    ...(type !== '' && { 'content-type': type }),
    ...{ host: 'evil.example.com', 'transfer-encoding': 'chunked' },
  }
  const request = Object.assign(stream, { url: `${PROVIDER_PATH}${url}`, method, headers })
  const answer: { status?: number; headers?: Record<string, string>; text?: string } = {}
  const response = {
    writeHead: (status: number, given: Record<string, string>) => Object.assign(answer, { status, headers: given }),
    end: (text = '') => Object.assign(answer, { text }),
  }
  let served: Served | undefined
  await serveProvider(
    {
      source: {
        current: async () => async (given: IncomingMessage) => {
          served = given as unknown as Served
        },
      } as never,
      baseUrl: () => baseUrl ?? 'https://login.example.com:8443/base',
    },
    request as unknown as IncomingMessage,
    { response: response as unknown as ServerResponse, address: '10.0.0.7' },
  )
  return { answer, served, body: served?.iterator?.()[0]?.toString() }
}

const REFUSED = {
  status: 400,
  headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' },
  text: JSON.stringify({
    error: 'invalid_request',
    error_description: 'the request is larger than 8 KiB, or cannot be read',
  }),
}
const refused = { answer: REFUSED, served: undefined }

describe('the provider gets', () => {
  test('its own path, and the address of the service in place of that of the request', async () => {
    const { served, answer } = await send({ method: 'GET', url: '/authorize?a=1' })
    expect(answer).toEqual({})
    expect([served?.url, served?.originalUrl]).toEqual(['/authorize?a=1', `${PROVIDER_PATH}/authorize?a=1`])
    expect(served?.headers).toMatchObject({
      ...{ 'x-forwarded-proto': 'https', 'x-forwarded-host': 'login.example.com:8443', 'x-forwarded-for': '10.0.0.7' },
    })
    const moved = await send({ method: 'GET', baseUrl: 'http://other.example.com' })
    expect(moved.served?.headers).toMatchObject({
      ...{ 'x-forwarded-proto': 'http', 'x-forwarded-host': 'other.example.com' },
    })
  })

  test.each([
    ['', '/'],
    ['?a=1', '/?a=1'],
    ['/', '/'],
  ])('for %j the path %s', async (url, path) => {
    expect((await send({ method: 'GET', url })).served?.url).toBe(path)
  })

  test('a form as it came, with its length', async () => {
    const { served, body } = await send({ body: ['code=a', '&client_id=%C3%A4'] })
    expect(body).toBe('code=a&client_id=%C3%A4')
    expect(served?.headers).toMatchObject({ 'content-length': '23' })
    expect(served?.headers).not.toHaveProperty('transfer-encoding')
    // Another endpoint may read another kind of body.
    expect((await send({ url: '/register', type: 'application/json', body: ['{}'] })).body).toBe('{}')
  })

  test.each(['/revoke', '/introspect'])('at %s each JWT in the form that its handler accepts', async (url) => {
    const { body } = await send({ url: `${url}?x=1`, body: ['token=a.b.c&hint=d.e.f&token=plain'] })
    expect(body).toBe('hint=d.e.f&token=a.b.c.&token=plain')
    expect((await send({ url: '/token', body: ['token=a.b.c'] })).body).toBe('token=a.b.c')
  })
})

describe('a request is refused', () => {
  test('whose address is longer than 8 KiB', async () => {
    const fill = LIMIT - PROVIDER_PATH.length - 1
    const of = (length: number) => send({ method: 'GET', url: `/${'a'.repeat(length)}` })
    expect((await of(fill)).served).toBeDefined()
    expect(await of(fill + 1)).toMatchObject(refused)
  })

  test.each([
    ['in one piece', (length: number) => ['a'.repeat(length)]],
    ['in several', (length: number) => ['a'.repeat(5_000), 'a'.repeat(length - 5_001), 'a']],
  ])('whose body is larger than 8 KiB, %s', async (_name, bodyOf) => {
    expect((await send({ body: bodyOf(LIMIT) })).body).toHaveLength(LIMIT)
    expect(await send({ body: bodyOf(LIMIT + 1) })).toMatchObject(refused)
  })

  test('whose body is larger, before its end comes', async () => {
    expect(await send({ body: ['a'.repeat(LIMIT), 'a'], fault: 'never' })).toMatchObject(refused)
  })

  test.each(['error', 'close'] as const)('whose client leaves before its end: %s', async (fault) => {
    expect(await send({ body: ['code=a'], fault })).toMatchObject(refused)
  })

  test.each(['/authorize', '/end-session', '/revoke', '/introspect'])('whose body at %s is no form', async (url) => {
    for (const type of ['application/json', '', `x-${FORM}`, `${FORM}ed`])
      expect(await send({ url, type, body: ['token=a'] })).toMatchObject(refused)
  })
})

describe.each([
  ['an authorization', '/authorize'],
  ['a sign-out', '/end-session'],
])('%s by POST', (_name, url) => {
  const post = (body: string[], type = FORM) => send({ url, type, body })

  test('continues as one by GET at the address of the service', async () => {
    const { answer, served } = await post(['client_id=app&scope=openid+email'], `${FORM.toUpperCase()}; charset=x`)
    expect(served).toBeUndefined()
    expect(answer).toEqual({
      ...{ status: 303, text: '' },
      headers: {
        location: `https://login.example.com:8443/base${PROVIDER_PATH}${url}?client_id=app&scope=openid+email`,
        'cache-control': 'no-store',
      },
    })
  })

  test('is refused where that address would be longer than 8 KiB, or its body is', async () => {
    const base = `https://login.example.com:8443/base${PROVIDER_PATH}${url}?a=`
    expect((await post([`a=${'b'.repeat(LIMIT - base.length)}`])).answer.status).toBe(303)
    expect(await post([`a=${'b'.repeat(LIMIT - base.length + 1)}`])).toMatchObject(refused)
    expect(await post(['b'.repeat(LIMIT + 1)])).toMatchObject(refused)
  })
})
