import pino from 'pino'
import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { startSmtpServer } from '../../../test/harness/fakes/smtp-server.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { buildIdMaker } from '../../base/id.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import { OwnFault } from '../../outbound/own-fault/own-fault.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { listKeptMails } from './kept-mail.store.ts'
import { buildKeepingTransport } from './kept-mail.ts'
import { MailError, type MailId, type MailTransport } from './mail.ts'
import { loadMailTemplate, renderMail } from './mail-template.ts'
import { buildMailWorker, findNextAttempt, RETRY_DELAYS_MS } from './mail-worker.ts'
import { deleteEndedMails } from './outbox.store.ts'
import { writeMail } from './outbox.ts'
import { buildSmtpTransport } from './smtp-transport.ts'

const SECRET = 'a-secret-key-of-at-least-32-bytes-long'
const LOOK = { color: '#4f46e5', onColor: '#ffffff', darkColor: '#635bff', darkOnColor: '#ffffff', logo: null }
const CONTENT = { subject: 'A subject', text: 'https://x.example/?token=secret-of-the-link\n' }

/** An outbox on a database of its own, and workers on it. */
async function openOutbox(transport: MailTransport) {
  const database = await createTestDatabase()
  const clock = buildManualClock()
  const ids = buildIdMaker(clock, systemRandom)
  const keyring = buildKeyring([SECRET], systemRandom)
  const now = () => new Date(clock.now())
  const worker = (more: Partial<Parameters<typeof buildMailWorker>[0]> = {}) =>
    buildMailWorker({
      db: database.db,
      clock,
      rest: async () => {},
      isTrusted: () => true,
      logger: pino({ level: 'silent' }),
      keyring,
      template: loadMailTemplate(undefined, LOOK),
      transport,
      ...more,
    })
  const write = (to: string, more: { expiresAt?: Date; isReal?: boolean } = {}) =>
    inTransaction(database.db, async (tx) => {
      const expiresAt = new Date(clock.now() + 3_600_000)
      await writeMail({ ids, keyring, canSendMail: true }, tx, {
        kind: 'test',
        to,
        content: CONTENT,
        expiresAt,
        now: now(),
        ...more,
      })
    })
  const rows = async () => (await database.pool.query('select * from mail_outbox order by document_id')).rows
  return { database, clock, ids, now, worker, write, rows, [Symbol.asyncDispose]: database[Symbol.asyncDispose] }
}

/** A transport that fails with these errors, one after the other, and then takes mails. */
function buildFailing(...errors: Error[]): MailTransport & { sent: string[] } {
  const sent: string[] = []
  return {
    sent,
    send: async ({ to }) => {
      const error = errors.shift()
      if (error) throw error
      sent.push(to)
    },
    close: () => {},
  }
}
const refused = (isPermanent: boolean) => new MailError('SMTP refused', { isPermanent })

describe('the outbox', () => {
  test('keeps what a mail says sealed until it is sent, and erases it then', async () => {
    const transport = buildFailing(refused(false))
    await using outbox = await openOutbox(transport)
    await outbox.write('one@example.com')
    expect(JSON.stringify(await outbox.rows())).not.toContain('secret-of-the-link')
    expect(await outbox.worker().drain()).toBe(1)
    expect(await outbox.rows()).toMatchObject([{ status: 'waiting', attempts: 1, last_error: 'SMTP refused' }])
    outbox.clock.advance(RETRY_DELAYS_MS[0]!)
    expect(await outbox.worker().drain()).toBe(1)
    expect(await outbox.rows()).toMatchObject([{ status: 'sent', content: null, ended_at: outbox.now() }])
    expect(transport.sent).toEqual(['one@example.com'])
  })

  test('holds nothing of a transaction that was rolled back, nor of a mail that is not real', async () => {
    await using outbox = await openOutbox(buildFailing())
    const failing = inTransaction(outbox.database.db, async (tx) => {
      await tx
        .insertInto('kept_mail')
        .values({ document_id: outbox.ids.next(), recipient: 'a', subject: 'b', text: 'c', created_at: outbox.now() })
        .execute()
      throw new Error('rolled back')
    })
    await expect(failing).rejects.toThrow('rolled back')
    await outbox.write('one@example.com', { isReal: false })
    expect(await outbox.rows()).toEqual([])
  })

  test('does not send a mail that its kind does not want any more, and asks before each attempt', async () => {
    const transport = buildFailing(refused(false))
    await using outbox = await openOutbox(transport)
    await outbox.write('one@example.com')
    let isWanted = true
    const asked: string[] = []
    const checks = {
      test: async (_db: unknown, { to }: { to: string }) => {
        asked.push(to)
        return isWanted
      },
      other: async () => false,
    }
    await outbox.worker({ checks }).drain()
    isWanted = false
    outbox.clock.advance(RETRY_DELAYS_MS[0]!)
    await outbox.worker({ checks }).drain()
    expect(asked).toEqual(['one@example.com', 'one@example.com'])
    expect(await outbox.rows()).toMatchObject([{ status: 'failed', last_error: 'not wanted', content: null }])
    expect(transport.sent).toEqual([])
  })

  test('counts no attempt that this process could not make, and sends the mail when it can', async () => {
    const fault = new OwnFault('EMFILE')
    const own = new MailError('own fault EMFILE', { isPermanent: false, ownFault: fault })
    const transport = buildFailing(...Array.from({ length: 10 }, () => own))
    await using outbox = await openOutbox(transport)
    await outbox.write('one@example.com')
    const faults: OwnFault[] = []
    const worker = outbox.worker({ onOwnFault: (fault) => faults.push(fault) })
    for (let step = 0; step < 10; step += 1) {
      expect(await worker.drain()).toBe(1)
      expect(await outbox.rows()).toMatchObject([{ status: 'waiting', attempts: 0, last_error: null }])
      outbox.clock.advance(10_000)
    }
    expect(faults).toEqual(Array(10).fill(fault))
    expect(await worker.drain()).toBe(1)
    expect(await outbox.rows()).toMatchObject([{ status: 'sent', attempts: 1 }])
    expect(transport.sent).toEqual(['one@example.com'])
  })

  test('tries a mail again that meets a bug, says where without its text, and sends the others at once', async () => {
    const transport = buildFailing()
    await using outbox = await openOutbox(transport)
    for (const to of ['one@example.com', 'two@example.com', 'three@example.com']) await outbox.write(to)
    const lines: string[] = []
    const logger = pino({ level: 'error' }, { write: (line: string) => void lines.push(line) })
    const [first] = await outbox.rows()
    const open = (text: string, context: string) =>
      context.includes(first.document_id)
        ? '{"secret-of-the-link'
        : buildKeyring([SECRET], systemRandom).open(text, context)
    expect(await outbox.worker({ logger, keyring: { open } }).drain()).toBe(3)
    expect(transport.sent).toEqual(['two@example.com', 'three@example.com'])
    expect(await outbox.rows()).toMatchObject([
      {
        status: 'waiting',
        attempts: 1,
        last_error: 'unexpected',
        due_at: new Date(outbox.clock.now() + RETRY_DELAYS_MS[0]!),
      },
      { status: 'sent' },
      { status: 'sent' },
    ])
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      {
        ...{ mail_id: first.document_id, error: 'unexpected', is_given_up: false, code: 'SyntaxError' },
        at: expect.arrayContaining([expect.stringContaining('mail-worker.ts')]),
        msg: 'mail not sent for a bug: see docs/operations.md, mail',
      },
    ])
    expect(lines.join()).not.toContain('secret-of-the-link')
    // Without the database nothing could be recorded: the round ends, and comes again.
    const away = { test: () => Promise.reject(Object.assign(new Error('away'), { code: 'ECONNREFUSED' })) }
    outbox.clock.advance(RETRY_DELAYS_MS[0]!)
    await expect(outbox.worker({ checks: away }).drain()).rejects.toThrow('away')
  })

  test('tries a mail again after each delay, gives it up after the last, and erases it', async () => {
    const transport = buildFailing(...Array.from({ length: 10 }, () => refused(false)))
    await using outbox = await openOutbox(transport)
    await outbox.write('one@example.com')
    const worker = outbox.worker()
    for (const delay of [0, ...RETRY_DELAYS_MS]) {
      outbox.clock.advance(Math.max(0, delay - 1))
      if (delay > 0) expect(await worker.drain()).toBe(0)
      outbox.clock.advance(delay > 0 ? 1 : 0)
      expect(await worker.drain()).toBe(1)
    }
    const attempts = RETRY_DELAYS_MS.length + 1
    expect(await outbox.rows()).toMatchObject([{ status: 'failed', attempts, content: null }])
  })

  test('gives a mail up at once that the server refuses for good, that is too late, or that no key opens', async () => {
    await using outbox = await openOutbox(buildFailing(refused(true)))
    await outbox.write('refused@example.com')
    await outbox.worker().drain()
    await outbox.write('late@example.com', { expiresAt: outbox.now() })
    await outbox.worker().drain()
    await outbox.write('unreadable@example.com')
    await outbox.worker({ keyring: buildKeyring([`other-${SECRET}`], systemRandom) }).drain()
    expect(await outbox.rows()).toMatchObject([
      { recipient: 'refused@example.com', status: 'failed', last_error: 'SMTP refused', content: null },
      { recipient: 'late@example.com', status: 'failed', last_error: 'expired', content: null },
      { recipient: 'unreadable@example.com', status: 'failed', last_error: 'unreadable', content: null },
    ])
  })

  test('sends each mail once with several workers at once', async () => {
    const transport = buildFailing()
    await using outbox = await openOutbox(transport)
    for (let mail = 0; mail < 25; mail += 1) await outbox.write(`${mail}@example.com`)
    await Promise.all([outbox.worker().drain(), outbox.worker().drain(), outbox.worker().drain()])
    expect(transport.sent).toHaveLength(25)
    expect(new Set(transport.sent).size).toBe(25)
  })

  test('is sent as a whole by one worker at once, however long it is', async () => {
    const transport = buildFailing()
    await using outbox = await openOutbox(transport)
    for (let mail = 0; mail < 25; mail += 1) await outbox.write(`${mail}@example.com`)
    expect(await outbox.worker().drain()).toBe(25)
    expect(transport.sent).toHaveLength(25)
  })

  test('gives a mail of a worker that went down to another one, and takes no late result of the first', async () => {
    const hanging = Promise.withResolvers<void>()
    const started = Promise.withResolvers<void>()
    const slow: MailTransport = {
      send: () => {
        started.resolve()
        return hanging.promise
      },
      close: () => {},
    }
    const transport = buildFailing(refused(false))
    await using outbox = await openOutbox(transport)
    await outbox.write('one@example.com')
    const first = outbox.worker({ transport: slow }).drain()
    await started.promise
    expect(await outbox.worker().drain()).toBe(0)
    outbox.clock.advance(10 * 60_000)
    expect(await outbox.worker().drain()).toBe(1)
    hanging.resolve()
    await first
    expect(await outbox.rows()).toMatchObject([{ status: 'waiting', attempts: 2 }])
  })

  test('does not hold up a stop when the mail server hangs, and leaves what was not begun to others', async () => {
    const hanging = Promise.withResolvers<void>()
    const started = Promise.withResolvers<string>()
    const slow: MailTransport = {
      send: ({ to }) => {
        started.resolve(to)
        return hanging.promise
      },
      close: () => {},
    }
    await using outbox = await openOutbox(slow)
    for (const to of ['one@example.com', 'other@example.com']) await outbox.write(to)
    const worker = outbox.worker()
    const running = worker.run()
    const first = await started.promise
    worker.stop()
    await running
    hanging.resolve()
    const transport = buildFailing()
    await waitFor('the other mail to be free again', async () => {
      await outbox.worker({ transport }).drain()
      return transport.sent.length === 1
    })
    expect(transport.sent).not.toContain(first)
    // A mail that was not begun has had no attempt.
    expect((await outbox.rows()).map(({ attempts }) => attempts)).toEqual([1, 1])
  })

  test('is emptied of ended mails, not of waiting ones', async () => {
    await using outbox = await openOutbox(buildFailing())
    await outbox.write('sent@example.com')
    await outbox.worker().drain()
    outbox.clock.advance(1)
    await outbox.write('waiting@example.com')
    expect(await deleteEndedMails(outbox.database.db, outbox.now(), 10)).toBe(1)
    expect(await outbox.rows()).toMatchObject([{ recipient: 'waiting@example.com' }])
  })

  test('without a transport is not touched', async () => {
    await using outbox = await openOutbox(buildFailing())
    await outbox.write('one@example.com')
    expect(await outbox.worker({ transport: undefined }).drain()).toBe(0)
  })

  test('has no next attempt that would come after the mail expires', () => {
    const now = new Date('2026-09-11T12:00:00Z')
    const at = (ms: number) => new Date(now.getTime() + ms)
    expect(findNextAttempt({ attempts: 1, expiresAt: at(10_001) }, now)).toEqual(at(10_000))
    expect(findNextAttempt({ attempts: 1, expiresAt: at(10_000) }, now)).toBeUndefined()
    expect(findNextAttempt({ attempts: 5, expiresAt: at(9_999_999) }, now)).toBeUndefined()
  })
})

describe('mails of development', () => {
  test('are kept, the newest hundred', async () => {
    await using outbox = await openOutbox(buildFailing())
    const transport = buildKeepingTransport(outbox.database.db)
    for (let mail = 0; mail < 103; mail += 1) {
      outbox.clock.advance(1)
      await transport.send({ id: outbox.ids.next<'mail'>(), to: `${mail}@example.com`, ...CONTENT }, outbox.now())
    }
    const kept = await listKeptMails(outbox.database.db)
    expect(kept).toHaveLength(100)
    expect(kept[0]).toMatchObject({ to: '102@example.com', ...CONTENT })
  })
})

describe('SMTP', () => {
  const mail = { id: '01990000-0000-7000-8000-000000000001' as MailId, to: 'ada@example.com', ...CONTENT }
  const from = 'Signalbox <no-reply@id.example>'

  test('carries the HTML beside the text, as alternatives', async () => {
    await using server = await startSmtpServer()
    const transport = buildSmtpTransport({ url: server.url, from })
    await transport.send({ ...mail, html: '<p>In HTML</p>' }, new Date())
    transport.close()
    const [{ message: raw } = { message: '' }] = server.received
    expect(raw).toMatch(/multipart\/alternative/)
    expect(raw).toContain('https://x.example/')
    expect(raw).toContain('<p>In HTML</p>')
  })

  test('carries the logo beside the HTML, and lists no attachment', async () => {
    await using server = await startSmtpServer()
    const transport = buildSmtpTransport({ url: server.url, from })
    const logo = { id: 'logo@signalbox', type: 'image/png', body: Buffer.from('the bytes of a picture') }
    const { html = '', images } = renderMail(loadMailTemplate(undefined, { ...LOOK, logo }), {
      ...CONTENT,
      parts: { lang: 'en', service: 'Acme', before: [], link: 'https://x.example/', button: 'Go', after: [] },
    })
    await transport.send({ ...mail, html, ...(images && { images }) }, new Date())
    transport.close()
    const [{ message: raw } = { message: '' }] = server.received
    expect(raw).toMatch(
      /multipart\/alternative[\s\S]*text\/plain[\s\S]*multipart\/related[\s\S]*text\/html[\s\S]*image\/png/,
    )
    expect(raw).toContain('Content-ID: <logo@signalbox>')
    expect(raw).toContain('Content-Disposition: inline; filename=logo.png')
    expect(raw).toContain(logo.body.toString('base64'))
    expect(raw).not.toContain('Content-Disposition: attachment')
  })

  test('hands a mail over with its sender, an id that stays, and the mark of an automatic mail', async () => {
    await using server = await startSmtpServer()
    const transport = buildSmtpTransport({ url: server.url, from })
    await transport.send({ ...mail, subject: 'Grüße' }, new Date())
    const [received] = server.received
    expect(received).toMatchObject({ from: 'no-reply@id.example', to: ['ada@example.com'] })
    expect(received!.message).toContain(`Message-ID: <${mail.id}@id.example>`)
    expect(received!.message).toContain('Auto-Submitted: auto-generated')
    expect(received!.message).toContain('https://x.example/')
    transport.close()
  })

  test('says how a mail program stops mails, whatever the length of the address, and nothing without one', async () => {
    await using server = await startSmtpServer()
    const transport = buildSmtpTransport({ url: server.url, from })
    const unsubscribe = `https://id.example/auth/webhook-mail?token=${'a'.repeat(64)}`
    await transport.send({ ...mail, unsubscribe }, new Date())
    await transport.send(mail, new Date())
    const [first = '', second = ''] = server.received.map(({ message }) => message.replace(/\r?\n[ \t]+/g, ' '))
    expect(first).toContain(`List-Unsubscribe: <${unsubscribe}>`)
    expect(first).toContain('List-Unsubscribe-Post: List-Unsubscribe=One-Click')
    expect(second).not.toContain('List-Unsubscribe')
    transport.close()
  })

  test('lets nobody add headers or recipients by an address', async () => {
    await using server = await startSmtpServer()
    const transport = buildSmtpTransport({ url: server.url, from })
    const to = 'ada@example.com>\r\nRCPT TO:<eve@example.com'
    await transport.send({ ...mail, to, subject: 'A\r\nBcc: eve@example.com' }, new Date()).catch(() => {})
    for (const { to: recipients, message } of server.received) {
      expect(recipients).not.toContain('eve@example.com')
      expect(message).not.toMatch(/^Bcc:/m)
    }
    transport.close()
  })

  test.each([
    [{ responseCode: 550, message: 'no such user' }, true],
    [{ responseCode: 500, message: 'no such command' }, true],
    [{ responseCode: 499, message: 'try later' }, false],
    [{ responseCode: 450, message: 'try later' }, false],
  ])('reports the reply %o as an error without the address, final: %s', async (reply, isPermanent) => {
    await using server = await startSmtpServer()
    server.refuseRecipients(reply)
    const transport = buildSmtpTransport({ url: server.url, from })
    const error = await transport.send(mail, new Date()).catch((thrown: unknown) => thrown)
    const message = expect.stringContaining(String(reply.responseCode))
    expect(error).toMatchObject({ name: 'MailError', isPermanent, message })
    expect((error as Error).message).not.toContain('ada@')
    transport.close()
  })

  test('reports a refused login as an error that may pass: whoever runs the service mends it', async () => {
    await using server = await startSmtpServer({ refusesLogin: true })
    const transport = buildSmtpTransport({ url: server.url.replace('smtp://', 'smtp://user:password@'), from })
    const error = { name: 'MailError', isPermanent: false, message: 'SMTP EAUTH 535' }
    await expect(transport.send(mail, new Date())).rejects.toMatchObject(error)
    transport.close()
  })

  test('reports a server that is away as an error that may pass', async () => {
    const server = await startSmtpServer()
    await server[Symbol.asyncDispose]()
    const transport = buildSmtpTransport({ url: server.url, from })
    const message = expect.stringMatching(/^SMTP E[A-Z]+$/)
    await expect(transport.send(mail, new Date())).rejects.toMatchObject({
      name: 'MailError',
      isPermanent: false,
      message,
    })
    transport.close()
  })
})
