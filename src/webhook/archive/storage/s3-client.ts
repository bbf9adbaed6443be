import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { AwsV4Signer } from 'aws4fetch'
import { Agent, type Dispatcher, request } from 'undici'
import { ArchiveError } from './archive-error.ts'

export interface S3Settings {
  /** `https://host` of the service; the bucket is the first part of the path. */
  endpoint: string
  region: string
  bucket: string
  accessKeyId: string
  secretAccessKey: string
  sessionToken: string | undefined
}

export interface S3Deps {
  now: () => Date
  /** Waits before another try. */
  rest: (ms: number) => Promise<void>
}

/** A request. `openBody` is called for each try. */
export interface S3Request {
  method: 'GET' | 'PUT' | 'DELETE'
  /** The name of an object; empty for the bucket. */
  key: string
  query?: Readonly<Record<string, string>>
  headers?: Readonly<Record<string, string>>
  body?: { bytes: number; sha256: string; open: () => Readable | Buffer }
}

/** Waits before the second and the further tries, in milliseconds. */
const RESTS_MS = [250, 1_000, 4_000]

/** Answers after which the same request may succeed. */
const PASSING = new Set([408, 429, 500, 502, 503, 504])

/** Limit of the answer of an error that is read, in bytes. */
const ERROR_BYTES = 16_384

const EMPTY_HASH = createHash('sha256').digest('hex')

/** An answer: 2xx, or 404 for a GET or DELETE of an object. */
export interface S3Answer {
  status: number
  body: Dispatcher.ResponseData['body']
}

/** A client that signs by Signature Version 4 and tries again what may pass. */
export interface S3Client {
  send(input: S3Request): Promise<S3Answer>
  close(): Promise<void>
}

/** Opens a client of a bucket. Throws `storage_refused` with the code of the storage, and `storage_unreachable`. */
export function openS3Client(settings: S3Settings, { now, rest }: S3Deps): S3Client {
  const agent = new Agent({ connect: { timeout: 10_000 }, headersTimeout: 60_000, bodyTimeout: 60_000 })
  const attempt = async (input: S3Request): Promise<S3Answer | { again: ArchiveError }> => {
    try {
      return await judge(await sendOnce(settings, { input, agent, now: now() }), input)
    } catch (error) {
      if (error instanceof ArchiveError) throw error
      const { code } = error as NodeJS.ErrnoException
      return { again: new ArchiveError('storage_unreachable', `The object storage is away (${code ?? 'failed'}).`) }
    }
  }
  return {
    send: async (input) => {
      for (const ms of RESTS_MS) {
        const answer = await attempt(input)
        if (!('again' in answer)) return answer
        await rest(ms)
      }
      const answer = await attempt(input)
      if ('again' in answer) throw answer.again
      return answer
    },
    close: () => agent.destroy(),
  }
}

async function sendOnce(
  settings: S3Settings,
  { input, agent, now }: { input: S3Request; agent: Agent; now: Date },
): Promise<Dispatcher.ResponseData> {
  const { endpoint, bucket, region, accessKeyId, secretAccessKey, sessionToken } = settings
  const { method, key, query = {}, headers = {}, body } = input
  const url = new URL(`${endpoint.replace(/\/$/, '')}/${bucket}${key && `/${key}`}`)
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  const signer = new AwsV4Signer({
    ...{ method, url: url.href, region, accessKeyId, secretAccessKey, service: 's3' },
    ...(sessionToken !== undefined && { sessionToken }),
    headers: { ...headers, 'x-amz-content-sha256': body?.sha256 ?? EMPTY_HASH },
    datetime: now.toISOString().replace(/[:-]|\.\d{3}/g, ''),
  })
  const signed = await signer.sign()
  const sent = Object.fromEntries(signed.headers)
  return request(signed.url, {
    method,
    dispatcher: agent,
    headers: body ? { ...sent, 'content-length': String(body.bytes) } : sent,
    body: body?.open() ?? null,
  })
}

async function judge(
  { statusCode: status, body }: Dispatcher.ResponseData,
  { method, key }: S3Request,
): Promise<S3Answer | { again: ArchiveError }> {
  if (status >= 200 && status < 300) return { status, body }
  const code = await readErrorCode(body)
  if (status === 404 && method !== 'PUT' && key !== '' && code !== 'NoSuchBucket') return { status, body }
  const error = new ArchiveError(
    'storage_refused',
    `The object storage answered ${status} ${code} to ${method} ${key}.`,
  )
  if (PASSING.has(status)) return { again: error }
  throw error
}

/** The code in an error's XML: a word, or nothing. The rest of the answer is not shown: it repeats what was signed. */
async function readErrorCode(body: S3Answer['body']): Promise<string> {
  let text = ''
  for await (const chunk of body) {
    text += (chunk as Buffer).toString('latin1')
    if (text.length > ERROR_BYTES) break
  }
  return /<Code>([A-Za-z0-9]{1,64})<\/Code>/.exec(text)?.[1] ?? ''
}
