import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { parseAllowedTargets } from './callback-url.ts'
import { buildGuardedFetch, GuardedFetchError } from './guarded-fetch.ts'

async function serve(listener: RequestListener) {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const LOCAL = { allowHttp: true, allowedPrivateTargets: parseAllowedTargets('127.0.0.1,provider.test') }
const PUBLIC = { allowHttp: false, allowedPrivateTargets: [] }
const lookup = async () => ['127.0.0.1']
const get = { method: 'GET', headers: {} }

const codeOf = async (answer: Promise<Response>) =>
  answer.then(
    () => 'answered',
    (error: unknown) => (error instanceof GuardedFetchError ? error.code : error),
  )

describe('the guarded fetch', () => {
  test('sends method, headers and form, and returns status, headers and body', async () => {
    await using server = await serve((request, response) => {
      response.setHeader('x-seen', `${request.method} ${request.url} ${request.headers['x-own']}`)
      response.statusCode = 201
      request.pipe(response)
    })
    const answer = await buildGuardedFetch({ lookup, rules: LOCAL })(`http://127.0.0.1:${server.port}/a?b=c`, {
      method: 'POST',
      headers: { 'x-own': 'yes' },
      body: new URLSearchParams({ code: 'a b' }),
    })
    expect([answer.status, answer.headers.get('x-seen'), await answer.text()]).toEqual([
      201,
      'POST /a?b=c yes',
      'code=a+b',
    ])
  })

  test('returns a redirect and does not follow it', async () => {
    let calls = 0
    await using server = await serve((_request, response) => {
      calls += 1
      response.writeHead(302, { location: '/elsewhere' }).end()
    })
    const answer = await buildGuardedFetch({ lookup, rules: LOCAL })(`http://127.0.0.1:${server.port}/`, get)
    expect([answer.status, calls]).toEqual([302, 1])
  })

  test('dials no private, loopback or metadata address', async () => {
    const fetch = buildGuardedFetch({ lookup, rules: PUBLIC })
    expect(await codeOf(fetch('https://127.0.0.1/', get))).toBe('URL_HOST_NOT_PUBLIC')
    expect(await codeOf(fetch('https://169.254.169.254/latest', get))).toBe('URL_HOST_NOT_PUBLIC')
    expect(await codeOf(fetch('https://[::1]/', get))).toBe('URL_HOST_NOT_PUBLIC')
  })

  test('dials no public name that resolves to a private address', async () => {
    expect(await codeOf(buildGuardedFetch({ lookup, rules: PUBLIC })('https://rebind.example/', get))).toBe(
      'ADDRESS_NOT_PUBLIC',
    )
  })

  test('refuses plain http outside development, also for an allowed private target', async () => {
    const rules = { ...LOCAL, allowHttp: false }
    expect(await codeOf(buildGuardedFetch({ lookup, rules })('http://provider.test/', get))).toBe('URL_NOT_HTTPS')
    expect(await codeOf(buildGuardedFetch({ lookup, rules: PUBLIC })('http://provider.example/', get))).toBe(
      'URL_NOT_HTTPS',
    )
  })

  test('stops reading an answer at its limit', async () => {
    await using server = await serve((_request, response) => response.end('x'.repeat(300_000)))
    expect(await codeOf(buildGuardedFetch({ lookup, rules: LOCAL })(`http://127.0.0.1:${server.port}/`, get))).toBe(
      'ANSWER_TOO_LARGE',
    )
  })

  test('ends a request without an answer at its limit', async () => {
    await using server = await serve(() => {})
    const fetch = buildGuardedFetch({ lookup, rules: LOCAL, totalTimeoutMs: 150 })
    expect(await codeOf(fetch(`http://127.0.0.1:${server.port}/`, get))).toBe('TIMEOUT')
  })

  test('an error names no address', async () => {
    const error = await buildGuardedFetch({ lookup, rules: LOCAL })('http://127.0.0.1:1/', get).catch((one) => one)
    expect(error).toBeInstanceOf(GuardedFetchError)
    expect(String(error)).not.toContain('127.0.0.1')
  })
})
