import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PROJECT_ROOT, startProcess } from '../harness/process/process.ts'

/** A service that answers every request with its path. */
async function startService() {
  const server = createServer((asked, response) => response.end(asked.url)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, stop: () => server.close() && server.closeAllConnections() }
}

/** Sends a path as it is, which `fetch` would normalize. */
async function ask(port: number, path: string): Promise<{ status: number; text: string }> {
  const sent = request({ host: '127.0.0.1', port, path, agent: false }).end()
  const [answer] = await once(sent, 'response')
  let text = ''
  for await (const chunk of answer) text += chunk
  return { status: answer.statusCode, text }
}

test('the example page passes calls of the API on, and no path that leads out of it', async () => {
  const service = await startService()
  const page = startProcess({
    args: [join(PROJECT_ROOT, 'examples', 'realtime', 'main.ts')],
    env: { SIGNALBOX_URL: service.url, PORT: '0' },
  })
  try {
    const [, port = ''] = await page.waitForOutput(/http:\/\/127\.0\.0\.1:(\d+)/)
    expect(await ask(Number(port), '/api/v3/auth/session?a=1')).toEqual({
      status: 200,
      text: '/api/v3/auth/session?a=1',
    })
    for (const path of [
      '/api/../metrics',
      '/api/v3/../../metrics',
      '/api/v3/%2e%2e/%2E./metrics',
      '/api/v3/..\\..\\metrics',
      '/api/metrics',
      '/metrics',
      `${service.url}/metrics`,
    ])
      expect([path, await ask(Number(port), path)]).toEqual([path, { status: 404, text: 'Not found' }])
  } finally {
    await page.kill()
    service.stop()
  }
})
