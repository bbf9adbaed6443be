import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** The credentials that the storage knows. */
export const STORAGE_KEY = { accessKeyId: 'AKIDTEST', secretAccessKey: 'secret-of-the-tests/+=' }

/** A fault of the next requests that match: `status` answers, `reset` breaks off the answer, `flip` changes a byte that is stored. */
export interface StorageFault {
  kind: 'status' | 'reset' | 'flip'
  status?: number
  /** How often. */
  times: number
  /** Requests whose line, such as `PUT /bucket/name`, contains it. */
  on?: string
}

/** Object storage on loopback that speaks S3: objects in memory, signatures checked, faults on demand. */
export interface ObjectStore extends AsyncDisposable {
  url: string
  objects: Map<string, Buffer>
  /** The lines of all requests, each with its range. */
  requests: string[]
  fail(fault: StorageFault): void
}

/** Names of one page of a listing. */
const PAGE = 2

/** Options of a storage. `beforePut`: runs when the whole body of an object is there; false: it is not stored. */
export interface ObjectStoreOptions {
  bucket?: string
  region?: string
  beforePut?: (key: string) => Promise<boolean>
}

export async function startObjectStore(options: ObjectStoreOptions = {}): Promise<ObjectStore> {
  const { bucket = 'archive', region = 'us-east-1', beforePut } = options
  const objects = new Map<string, Buffer>()
  const requests: string[] = []
  const faults: StorageFault[] = []
  const server = createServer((request, response) => {
    const line = `${request.method} ${request.url}`
    requests.push(`${line} ${request.headers.range ?? ''}`.trim())
    const fault = faults.find(({ times, on }) => times > 0 && line.includes(on ?? ''))
    if (fault) fault.times -= 1
    handle({ request, response, fault, objects, bucket, region, beforePut }).catch(() => request.destroy())
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    objects,
    requests,
    fail: (fault) => faults.push({ ...fault }),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}

interface Exchange {
  request: IncomingMessage
  response: ServerResponse
  fault: StorageFault | undefined
  objects: Map<string, Buffer>
  bucket: string
  region: string
  beforePut: ObjectStoreOptions['beforePut']
}

async function handle({ request, response, fault, objects, bucket, region, beforePut }: Exchange): Promise<void> {
  const body = await buffer(request)
  const refuse = (status: number, code: string) =>
    void response.writeHead(status).end(`<Error><Code>${code}</Code><StringToSign>secret</StringToSign></Error>`)
  if (fault?.kind === 'status') return refuse(fault.status ?? 503, 'SlowDown')
  const refused = findRefusal(request, body, region)
  if (refused) return refuse(403, refused)
  const url = new URL(request.url ?? '', 'http://storage')
  const [, named, ...rest] = decodeURIComponent(url.pathname).split('/')
  const key = rest.join('/')
  if (named !== bucket) return refuse(404, 'NoSuchBucket')
  if (request.method === 'PUT') {
    // Object storage takes no body of unknown length.
    if (request.headers['content-length'] === undefined) return refuse(411, 'MissingContentLength')
    if (fault?.kind === 'flip') body.writeUInt8(body.readUInt8(body.length - 20) ^ 1, body.length - 20)
    if (beforePut && !(await beforePut(key))) return void request.destroy()
    objects.set(key, body)
    return void response.end()
  }
  if (request.method === 'DELETE') {
    objects.delete(key)
    return void response.writeHead(204).end()
  }
  if (key === '') return void response.end(listObjects(objects, url.searchParams))
  const object = objects.get(key)
  if (!object) return refuse(404, 'NoSuchKey')
  const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? []
  const bytes = start === undefined ? object : object.subarray(Number(start), Number(end) + 1)
  response.writeHead(start === undefined ? 200 : 206, { 'content-length': bytes.length })
  if (fault?.kind !== 'reset') return void response.end(bytes)
  response.write(bytes.subarray(0, Math.floor(bytes.length / 2)), () => response.destroy())
}

function listObjects(objects: Map<string, Buffer>, query: URLSearchParams): string {
  const names = [...objects.keys()].filter((name) => name.startsWith(query.get('prefix') ?? '')).sort()
  const start = Number(Buffer.from(query.get('continuation-token') ?? '', 'base64').toString() || 0)
  const next = Buffer.from(String(start + PAGE)).toString('base64')
  const keys = names.slice(start, start + PAGE).map((name) => `<Contents><Key>${name}</Key></Contents>`)
  const more = start + PAGE < names.length ? `<NextContinuationToken>${next}</NextContinuationToken>` : ''
  return `<?xml version="1.0"?><ListBucketResult>${keys.join('')}${more}</ListBucketResult>`
}

const hashOf = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex')
const sign = (key: Buffer | string, text: string) => createHmac('sha256', key).update(text).digest()

/** Why a signature of version 4 is refused, as AWS writes it; undefined for a right one. */
function findRefusal(request: IncomingMessage, body: Buffer, region: string): string | undefined {
  const { headers, method = '', url = '' } = request
  const [, key, day, signed = '', given = ''] =
    new RegExp(
      `^AWS4-HMAC-SHA256 Credential=([^/]+)/(\\d{8})/${region}/s3/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$`,
    ).exec(headers.authorization ?? '') ?? []
  if (key !== STORAGE_KEY.accessKeyId) return 'InvalidAccessKeyId'
  if (headers['x-amz-content-sha256'] !== hashOf(body)) return 'XAmzContentSHA256Mismatch'
  const at = String(headers['x-amz-date'])
  if (!at.startsWith(String(day))) return 'AuthorizationHeaderMalformed'
  const { pathname, searchParams } = new URL(url, 'http://storage')
  const encode = (text: string) =>
    encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  const query = [...searchParams].map(([name, value]) => `${encode(name)}=${encode(value)}`).sort()
  const lines = signed.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`)
  const path = decodeURIComponent(pathname).split('/').map(encode).join('/')
  const canonical = [method, path, query.join('&'), lines.join(''), signed, hashOf(body)].join('\n')
  const text = ['AWS4-HMAC-SHA256', at, `${day}/${region}/s3/aws4_request`, hashOf(canonical)].join('\n')
  const parts = [day, region, 's3', 'aws4_request'] as string[]
  const derived = parts.reduce<Buffer | string>((from, part) => sign(from, part), `AWS4${STORAGE_KEY.secretAccessKey}`)
  return timingSafeEqual(sign(derived, text), Buffer.from(given, 'hex')) ? undefined : 'SignatureDoesNotMatch'
}
