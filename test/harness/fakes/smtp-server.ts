import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'

/** A mail server of a test, on loopback. */
export interface SmtpServer extends AsyncDisposable {
  url: string
  /** The mails it took over: the addresses of the envelope, and the raw message. */
  received: { from: string; to: string[]; message: string }[]
  /** Answer to `RCPT TO` from now on: a code and a text. Without a refusal every recipient is accepted. */
  refuseRecipients(reply: { responseCode: number; message: string }): void
}

/** Starts a mail server without TLS and without accounts; with `refusesLogin` it asks for one and takes none. */
export async function startSmtpServer({ refusesLogin = false } = {}): Promise<SmtpServer> {
  const received: SmtpServer['received'] = []
  let refusal: Error | undefined
  const server = new SMTPServer({
    disabledCommands: refusesLogin ? ['STARTTLS'] : ['AUTH', 'STARTTLS'],
    allowInsecureAuth: true,
    onAuth: (_auth, _session, callback) => callback(new Error('refused')),
    disableReverseLookup: true,
    // A client that is left when the test ends is cut off.
    closeTimeout: 1,
    onRcptTo: (_address, _session, callback) => callback(refusal),
    onData: async (stream, { envelope }, callback) => {
      const { mailFrom, rcptTo } = envelope
      const to = rcptTo.map(({ address }) => address)
      received.push({ from: mailFrom ? mailFrom.address : '', to, message: await text(stream) })
      callback()
    },
  })
  // A client that is cut off is no error of the server.
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.server.address() as AddressInfo
  return {
    url: `smtp://127.0.0.1:${port}`,
    received,
    refuseRecipients: ({ responseCode, message }) => {
      refusal = Object.assign(new Error(message), { responseCode })
    },
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(resolve)),
  }
}
