import { createServer, type Socket } from 'node:net'

/** A mail server of a test, on loopback. */
export interface SmtpServer extends AsyncDisposable {
  url: string
  /** The mails it took over: the envelope and the raw message. */
  received: { from: string; to: string; message: string }[]
  /** What it answers to `RCPT TO` from now on. Default: `250 ok`. */
  answerRecipient(reply: string): void
}

/** Starts a mail server that speaks as much of RFC 5321 as one mail needs. */
export async function startSmtpServer(): Promise<SmtpServer> {
  const received: SmtpServer['received'] = []
  let recipientReply = '250 ok'
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    let mail = { from: '', to: '', message: '' }
    let isData = false
    let buffered = ''
    const say = (line: string) => socket.write(`${line}\r\n`)
    const hear = (line: string) => {
      if (isData) {
        if (line !== '.') mail.message += `${line}\n`
        else {
          isData = false
          received.push(mail)
          say('250 taken')
        }
        return
      }
      const [verb = ''] = line.toUpperCase().split(' ', 1)
      if (verb === 'MAIL') mail = { from: line, to: '', message: '' }
      if (verb === 'RCPT') mail.to = line
      if (verb === 'DATA') isData = true
      if (verb === 'QUIT') return socket.end('221 bye\r\n')
      say(verb === 'DATA' ? '354 go on' : verb === 'RCPT' ? recipientReply : '250 ok')
    }
    socket.setEncoding('utf8').on('data', (text: string) => {
      buffered += text
      const lines = buffered.split('\r\n')
      buffered = lines.pop() ?? ''
      for (const line of lines) hear(line)
    })
    say('220 test')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return {
    url: `smtp://127.0.0.1:${port}`,
    received,
    answerRecipient: (reply) => {
      recipientReply = reply
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
