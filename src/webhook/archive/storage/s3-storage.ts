import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ArchiveError } from './archive-error.ts'
import { openS3Client, type S3Answer, type S3Client, type S3Deps, type S3Settings } from './s3-client.ts'
import type { Storage } from './storage.ts'

const LIST_BYTES = 4 * 1024 * 1024

/** Opens a bucket that speaks the protocol of S3. `prefix`: empty, or ends with a slash. */
export async function openS3(settings: S3Settings & { prefix: string }, deps: S3Deps): Promise<Storage> {
  const { bucket, prefix } = settings
  const client = openS3Client(settings, deps)
  const workDir = await mkdtemp(join(tmpdir(), 'signalbox-ledger-'))
  return {
    place: `s3://${bucket}/${prefix}`,
    workDir,
    put: async (name, path, digest) => {
      await done(
        await client.send({
          ...{ method: 'PUT', key: prefix + name },
          body: { ...digest, open: () => createReadStream(path) },
        }),
      )
      await rm(path)
    },
    putText: async (name, text) => {
      const bytes = Buffer.from(text)
      const sha256 = createHash('sha256').update(bytes).digest('hex')
      const body = { bytes: bytes.length, sha256, open: () => bytes }
      await done(await client.send({ method: 'PUT', key: prefix + name, body }))
    },
    readText: async (name, limit) => {
      const { status, body } = await client.send({ method: 'GET', key: prefix + name })
      return status === 404 ? undefined : (await collect(name, body, limit)).toString('utf8')
    },
    readRange: async (name, start, end) => {
      if (end === start) return new ArrayBuffer(0)
      const headers = { range: `bytes=${start}-${end - 1}` }
      const answer = await client.send({ method: 'GET', key: prefix + name, headers })
      if (answer.status === 404) throw missing(name)
      const bytes = await collect(name, answer.body, end - start)
      if (bytes.length !== end - start || answer.status !== 206)
        throw new ArchiveError('file_damaged', `${name} is shorter than its manifest says.`)
      return Uint8Array.from(bytes).buffer
    },
    digest: async (name) => {
      const { status, body } = await client.send({ method: 'GET', key: prefix + name })
      if (status === 404) throw missing(name)
      const hash = createHash('sha256')
      let bytes = 0
      await reading(async () => {
        for await (const chunk of body) {
          hash.update(chunk as Buffer)
          bytes += (chunk as Buffer).length
        }
      })
      return { bytes, sha256: hash.digest('hex') }
    },
    remove: async (name) => done(await client.send({ method: 'DELETE', key: prefix + name })),
    list: (under) => listObjects(client, prefix, under),
    close: async () => {
      await client.close()
      await rm(workDir, { recursive: true, force: true })
    },
  }
}

const missing = (name: string) => new ArchiveError('file_missing', `${name} is in the manifest, but not there.`)

/** Reads the rest of an answer whose content nobody needs, so that its connection serves the next request. */
async function done({ body }: S3Answer): Promise<void> {
  await body.dump()
}

async function collect(name: string, body: S3Answer['body'], limit: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  await reading(async () => {
    for await (const chunk of body) {
      bytes += (chunk as Buffer).length
      if (bytes > limit) throw new ArchiveError('file_damaged', `${name} is longer than ${limit} bytes.`)
      chunks.push(chunk as Buffer)
    }
  })
  return Buffer.concat(chunks)
}

/** An answer that breaks off is a fault of the storage. */
async function reading(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (error instanceof ArchiveError) throw error
    const { code } = error as NodeJS.ErrnoException
    throw new ArchiveError('storage_unreachable', `An answer of the object storage broke off (${code ?? 'failed'}).`)
  }
}

async function* listObjects(client: S3Client, prefix: string, under: string): AsyncGenerator<string> {
  let token: string | undefined
  do {
    const query = {
      'list-type': '2',
      prefix: prefix + under,
      ...(token !== undefined && { 'continuation-token': token }),
    }
    const { body } = await client.send({ method: 'GET', key: '', query })
    const xml = (await collect('The listing', body, LIST_BYTES)).toString('utf8')
    // Names of an archive need no escape in XML; others in the bucket are none of it.
    for (const [, key = ''] of xml.matchAll(/<Key>([^<&]{1,1024})<\/Key>/g))
      if (key.startsWith(prefix)) yield key.slice(prefix.length)
    token = /<NextContinuationToken>([^<]{1,2048})<\/NextContinuationToken>/.exec(xml)?.[1]?.replaceAll('&amp;', '&')
  } while (token !== undefined)
}
