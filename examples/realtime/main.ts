import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { rolldown } from 'rolldown'

/** Serves the page, and passes its calls of `/api/` on to the service at SIGNALBOX_URL. */
const service = process.env.SIGNALBOX_URL ?? 'http://localhost:3000'
const port = Number(process.env.PORT ?? 4003)

const PAGE =
  '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Contracts</title></head>' +
  '<body><main><h1>Contracts</h1><div id="root"></div></main><script src="/page.js"></script></body></html>'

/** The page's program with its packages, as one script. */
async function buildScript(): Promise<string> {
  const bundle = await rolldown({
    input: join(import.meta.dirname, 'page.ts'),
    platform: 'browser',
    transform: { define: { 'process.env.NODE_ENV': '"production"' } },
  })
  const { output } = await bundle.generate({ format: 'iife' })
  return output[0].code
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** Makes the same call at the service. `path` has no `..` left, so that nothing but the API is reached. */
async function passOn(request: IncomingMessage, path: string): Promise<{ status: number; type: string; text: string }> {
  const { authorization, 'content-type': type } = request.headers
  const body = await readBody(request)
  const answer = await fetch(`${service}${path}`, {
    method: request.method ?? 'GET',
    headers: { ...(authorization && { authorization }), ...(type && { 'content-type': type }) },
    ...(body.length > 0 && { body: new Uint8Array(body) }),
  })
  return {
    status: answer.status,
    type: answer.headers.get('content-type') ?? 'text/plain',
    text: await answer.text(),
  }
}

async function answer(request: IncomingMessage): Promise<{ status: number; type: string; text: string }> {
  const { pathname, search } = new URL(request.url ?? '/', 'http://page.invalid')
  if (pathname.startsWith('/api/v3/'))
    return passOn(request, `${pathname}${search}`).catch(() => ({
      status: 502,
      type: 'application/json',
      text: '{"detail":"No answer."}',
    }))
  if (pathname === '/page.js') return { status: 200, type: 'text/javascript', text: script }
  if (pathname === '/') return { status: 200, type: 'text/html; charset=utf-8', text: PAGE }
  return { status: 404, type: 'text/plain', text: 'Not found' }
}

const script = await buildScript()
const server = createServer(async (request, response) => {
  const { status, type, text } = await answer(request)
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text)
}).listen(port, '127.0.0.1', () => {
  process.stdout.write(`The page is at http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
})
