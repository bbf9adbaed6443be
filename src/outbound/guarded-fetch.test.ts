import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { parseAllowedTargets } from './guard/callback-url.ts'
import { buildGuardedFetch, GuardedFetchError } from './guarded-fetch.ts'

async function serve(listener: RequestListener) {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    server,
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
    const error = await buildGuardedFetch({ lookup, rules: LOCAL })('http://127.0.0.1:1/', get).catch((cause) => cause)
    expect(error).toBeInstanceOf(GuardedFetchError)
    expect(String(error)).not.toContain('127.0.0.1')
  })
})

describe('the connections of the guarded fetch', () => {
  /** A server that counts its connections. */
  async function serveCounted(listener: RequestListener) {
    const sockets: Socket[] = []
    const server = await serve(listener)
    server.server.on('connection', (socket) => sockets.push(socket))
    return { ...server, sockets }
  }

  test('are kept for the next request, whatever its method, and for that origin only', async () => {
    await using server = await serveCounted(
      (request, response) => void request.resume().on('end', () => response.end('ok')),
    )
    await using other = await serveCounted((_request, response) => response.end('ok'))
    const fetch = buildGuardedFetch({ lookup, rules: LOCAL, now: () => 0 })
    for (const method of ['GET', 'POST', 'PUT', 'GET'])
      expect(
        (await fetch(`http://127.0.0.1:${server.port}/`, { method, headers: {}, body: method === 'GET' ? null : 'a' }))
          .status,
      ).toBe(200)
    await fetch(`http://127.0.0.1:${other.port}/`, get)
    expect([server.sockets.length, other.sockets.length]).toEqual([1, 1])
  })

  test('are as many as there are requests at once, and a bounded number of them is kept', async () => {
    const arrived: (() => void)[] = []
    const all = Promise.withResolvers<void>()
    await using server = await serveCounted((_request, response) => {
      arrived.push(() => response.end('ok'))
      if (arrived.length === 10) all.resolve()
    })
    const fetch = buildGuardedFetch({ lookup, rules: LOCAL, now: () => 0 })
    const answers = Array.from({ length: 10 }, () => fetch(`http://127.0.0.1:${server.port}/`, get))
    await all.promise
    for (const answer of arrived) answer()
    await Promise.all(answers)
    await expect.poll(() => server.sockets.filter(({ destroyed }) => !destroyed).length).toBe(4)
    expect(server.sockets).toHaveLength(10)
  })

  test('are not used again when the name has other addresses, or after they were idle for long', async () => {
    let nowMs = 0
    let addresses = ['127.0.0.1']
    await using server = await serveCounted((_request, response) => response.end('ok'))
    const rules = { ...LOCAL, allowedPrivateTargets: parseAllowedTargets('127.0.0.0/8,provider.test') }
    const fetch = buildGuardedFetch({ lookup: async () => addresses, rules, now: () => nowMs })
    const url = `http://provider.test:${server.port}/`
    await fetch(url, get)
    addresses = ['127.0.0.1', '127.0.0.2']
    await fetch(url, get)
    expect(server.sockets).toHaveLength(2)
    nowMs = 2_501
    await fetch(url, get)
    expect(server.sockets).toHaveLength(3)
  })

  test('that the server closes while they are used again are replaced for a GET, and end a POST', async () => {
    let isClosing = false
    const paths: string[] = []
    await using server = await serveCounted((request, response) => {
      paths.push(`${request.method} ${request.url}`)
      // The server closes what was idle, at the moment at which the next request arrives.
      if (isClosing && request.socket === server.sockets[0]) return void request.socket.destroy()
      response.end('ok')
    })
    const fetch = buildGuardedFetch({ lookup, rules: LOCAL, now: () => 0 })
    const url = `http://127.0.0.1:${server.port}`
    await fetch(`${url}/first`, get)
    isClosing = true
    expect((await fetch(`${url}/second`, get)).status).toBe(200)
    expect(paths).toEqual(['GET /first', 'GET /second', 'GET /second'])
    server.sockets.shift()
    expect(await codeOf(fetch(`${url}/third`, { method: 'POST', headers: {}, body: 'a' }))).toBe('UND_ERR_SOCKET')
    expect(paths.filter((path) => path === 'POST /third')).toHaveLength(1)
  })

  test('over which a status came that no response can have are not taken for closed: nothing is asked twice', async () => {
    const paths: (string | undefined)[] = []
    await using server = await serveCounted((request, response) => {
      paths.push(request.url)
      response.writeHead(request.url === '/odd' ? 999 : 200).end('ok')
    })
    const fetch = buildGuardedFetch({ lookup, rules: LOCAL, now: () => 0 })
    const url = `http://127.0.0.1:${server.port}`
    await fetch(`${url}/`, get)
    const error = await fetch(`${url}/odd`, get).catch((cause) => cause)
    expect([error.code, error.errorClass]).toEqual(['STATUS_UNKNOWN', 'protocol'])
    expect(paths).toEqual(['/', '/odd'])
  })

  test('over which an answer broke off, or was too long, are not kept', async () => {
    await using server = await serveCounted((request, response) => {
      if (request.url === '/long') return response.end('x'.repeat(300_000))
      if (request.url === '/broken')
        return void response.writeHead(200, { 'content-length': '9' }).write('a', () => response.destroy())
      response.end('ok')
    })
    const fetch = buildGuardedFetch({ lookup, rules: LOCAL, now: () => 0 })
    const url = `http://127.0.0.1:${server.port}`
    for (const path of ['/long', '/broken', '/', '/']) await fetch(`${url}${path}`, get).catch(() => undefined)
    expect(server.sockets).toHaveLength(3)
  })
})
