import { spawn, spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { GUIDE_FOLDER, isRunnable, SNIPPET_ENVIRONMENT, SNIPPET_LANGUAGES } from './snippet-languages.ts'

const SECRET = 'whsec_dGhlIHNlY3JldCBvZiB0aGUgcmVjZWl2ZXI='

const sign = (body: string, seconds = Math.floor(Date.now() / 1_000)) =>
  `t=${seconds},v1=${createHmac('sha256', SECRET).update(`${seconds}.${body}`).digest('hex')}`

const receivers = SNIPPET_LANGUAGES.flatMap((language) =>
  language.receiver ? [{ ...language.receiver, language }] : [],
)

test('there are whole receivers in Python and Go', () => {
  expect(receivers.map(({ language }) => language.name)).toEqual(['python', 'go'])
})

test.each(receivers.filter(({ language }) => isRunnable(language)))(
  '$file takes a genuine delivery, and refuses every other one with its reason',
  async ({ build, start }) => {
    const out = await mkdtemp(join(tmpdir(), 'signalbox-receiver-'))
    onTestFinished(() => rm(out, { recursive: true, force: true }))
    if (build) {
      const [program, ...args] = build(GUIDE_FOLDER, out)
      const built = spawnSync(program, args, { env: SNIPPET_ENVIRONMENT, encoding: 'utf8' })
      expect(built.status, built.stderr).toBe(0)
    }
    const [program, ...args] = start(GUIDE_FOLDER, out)
    const env = { ...SNIPPET_ENVIRONMENT, WEBHOOK_SECRET: SECRET, PORT: '0' }
    const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'ignore'] })
    onTestFinished(async () => {
      const ended = once(child, 'exit')
      if (child.kill('SIGKILL')) await ended
    })
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const first = (await lines.next()).value
    expect(first).toMatch(/^The receiver listens on port \d+$/)
    const url = `http://127.0.0.1:${/\d+$/.exec(first ?? '')?.[0]}/`
    const post = async (body: string, header: string | undefined) => {
      const headers = header === undefined ? undefined : { 'x-service-signature': header }
      const answer = await fetch(url, { method: 'POST', body, ...(headers && { headers }) })
      return `${answer.status} ${(await answer.text()).trim()}`
    }
    // Spaces as no JSON writer of a framework would make them: the bytes are verified.
    const body = '{ "id":"0198a000-0000-7000-8000-000000000001",  "type":"contract.create" }'
    expect(await post(body, undefined)).toBe('401 header_malformed')
    expect(await post(`${body} `, sign(body))).toBe('401 signature_mismatch')
    expect(await post(body, sign(body, 1_700_000_000))).toBe('401 timestamp_too_old')
    const long = 'a'.repeat(2 * 1024 * 1024)
    // A server that does not read a body to its end may close the connection before its answer is read.
    expect(await post(long, sign(long)).catch(() => '413 body_too_large')).toBe('413 body_too_large')
    expect((await fetch(url)).status).toBeGreaterThanOrEqual(405)
    expect(await post(body, sign(body))).toBe('200 ok')
    expect((await lines.next()).value).toBe('contract.create 0198a000-0000-7000-8000-000000000001')
  },
  120_000,
)
