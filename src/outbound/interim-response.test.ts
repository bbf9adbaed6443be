import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
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

  test('buffers at most 4 KiB', () => {
    const long = `HTTP/1.1 100 ${'x'.repeat(4_100)}`
    expect(readThrough([Buffer.from(long)])).toBe(long)
  })
})
