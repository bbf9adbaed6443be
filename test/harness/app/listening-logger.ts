import { Writable } from 'node:stream'
import pino, { type Logger } from 'pino'

/** A logger that calls `onLine` with each message, so that a test can wait for a log line. */
export function buildListeningLogger(onLine: (message: string) => void): Logger {
  const stream = new Writable({
    write(chunk, _encoding, done) {
      onLine(JSON.parse(String(chunk)).msg)
      done()
    },
  })
  return pino({ level: 'info' }, stream)
}
