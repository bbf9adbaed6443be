import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { expectLinear } from '../../../test/harness/run/linear.ts'
import { passOverInterim } from './interim-response.ts'

/** The bytes that a reader gets when these chunks arrive one by one. */
function readThrough(chunks: Buffer[]): string {
  const stream = new PassThrough()
  passOverInterim(stream as unknown as Socket)
  let text = ''
  for (const chunk of chunks) {
    stream.write(chunk)
    for (let part = stream.read(); part !== null; part = stream.read()) text += part.toString('latin1')
  }
  return text
}

function cut(text: string, points: number[]): Buffer[] {
  const bytes = Buffer.from(text, 'latin1')
  const edges = [0, ...points.map((point) => point % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return edges.slice(1).map((edge, index) => bytes.subarray(edges[index], edge))
}

describe('passOverInterim', () => {
  const interim = fc.constantFrom(
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n',
    'HTTP/1.0 102 P\r\n\r\n',
  )
  const final = fc.constantFrom(
    'HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 100 C\r\n\r\n',
    'HTTP/1.1 101 S\r\n\r\n',
    'HTTP/1.1 404 N\r\n\r\n1',
    'SSH-2.0-OpenSSH',
  )

  test('passes exactly the final response, for every split of the bytes', () => {
    fc.assert(
      fc.property(
        fc.array(interim, { maxLength: 3 }),
        final,
        fc.array(fc.nat(), { maxLength: 6 }),
        (before, last, points) => {
          expect(readThrough(cut(before.join('') + last, points))).toBe(last)
        },
      ),
      { numRuns: 1_000 },
    )
  })

  test('passes other bytes unchanged once they are longer than a status', () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 12, unit: 'binary-ascii' }),
        fc.array(fc.nat(), { maxLength: 4 }),
        (text, points) => {
          fc.pre(!/^HTTP\/1\.[01] 1/.test(text))
          expect(readThrough(cut(text, points))).toBe(text)
        },
      ),
    )
  })

  test('filters only at the start of each announced response', () => {
    const stream = new PassThrough()
    const expectResponse = passOverInterim(stream as unknown as Socket)
    const arrive = (text: string) => {
      stream.write(text)
      return stream.read()?.toString() ?? ''
    }
    const interimText = 'HTTP/1.1 100 Continue\r\n\r\n'
    expect(arrive('HTTP/1.1 200 OK\r\n\r\n')).toBe('HTTP/1.1 200 OK\r\n\r\n')
    expect(arrive(interimText)).toBe(interimText)
    expectResponse()
    expect(arrive(interimText)).toBe('')
    expect(arrive('HTTP/1.1 204 N\r\n\r\n')).toBe('HTTP/1.1 204 N\r\n\r\n')
  })

  const interimText = 'HTTP/1.1 100 Continue\r\n\r\n'
  const finalText = 'HTTP/1.1 204 N\r\n\r\n'

  test.each([
    ['100 interim responses', interimText.repeat(100), undefined],
    ['101 of them', interimText.repeat(101), 'INTERIM_FLOOD'],
    ['64 KiB', `HTTP/1.1 103 ${'x'.repeat(65_536 - 17)}\r\n\r\n`, undefined],
    ['a byte more', `HTTP/1.1 103 ${'x'.repeat(65_536 - 16)}\r\n\r\n`, 'INTERIM_FLOOD'],
    ['a head that does not end', `HTTP/1.1 103 ${'x'.repeat(65_536)}`, 'INTERIM_FLOOD'],
  ])('takes %s before an answer as documented', async (_name, before, code) => {
    const stream = new PassThrough({ highWaterMark: 1_000_000 })
    const closed = new Promise<Error | undefined>((resolve) => stream.once('error', resolve).once('end', resolve))
    passOverInterim(stream as unknown as Socket)
    stream.end(before + finalText)
    let text = ''
    for (let part = stream.read(); part !== null; part = stream.read()) text += part.toString('latin1')
    const error = await closed
    expect([text, (error as { code?: string } | undefined)?.code]).toEqual([code ? '' : finalText, code])
  })

  test('ends an answer whose framing does not end, and not one of 2 MiB', async () => {
    const chunk = Buffer.from(`1;${'x'.repeat(1024 - 7)}\r\na\r\n`)
    expect(chunk).toHaveLength(1024)
    const read = async (chunks: number) => {
      const stream = new PassThrough({ highWaterMark: 4_000_000 })
      const ended = new Promise<Error | undefined>((resolve) => stream.once('error', resolve).once('end', resolve))
      passOverInterim(stream as unknown as Socket)
      for (let at = 0; at < chunks; at += 1) {
        stream.write(chunk)
        if (stream.read() === null) break
      }
      stream.end()
      stream.read()
      return ((await ended) as { code?: string } | undefined)?.code
    }
    expect([await read(2_048), await read(2_049)]).toEqual([undefined, 'ANSWER_FLOOD'])
  })

  test('looks at each byte once, however they are cut', () => {
    fc.assert(
      fc.property(
        interim,
        fc.constantFrom('\r\n', '\r', 'x\r\n', 'HTTP/1.1 1'),
        fc.boolean(),
        (before, pump, isDripped) => {
          const build = (size: number) => {
            const bytes = Buffer.from(before + interimText.slice(0, -2) + pump.repeat(size / pump.length), 'latin1')
            const step = isDripped ? 7 : 4_096
            return Array.from({ length: Math.ceil(bytes.length / step) }, (_, at) =>
              bytes.subarray(at * step, (at + 1) * step),
            )
          }
          expectLinear(build, (chunks) => {
            const queue = [...chunks].reverse()
            const source = { read: () => queue.pop() ?? null, destroy: () => (queue.length = 0) }
            passOverInterim(source as unknown as Socket)
            while (queue.length > 0) source.read()
          })
        },
      ),
      { numRuns: 20 },
    )
  })
})
