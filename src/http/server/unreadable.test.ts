import { expect, test } from 'vitest'
import { notFound } from '../problem/problem.ts'
import { classifyReadError } from './unreadable.ts'

const known = { buildProblem: (target: string) => notFound(`thing at ${target}`) }
const classify = (code: string, packet?: string) =>
  classifyReadError(Object.assign(new Error('x'), { code, ...(packet && { rawPacket: Buffer.from(packet) }) }), known)

test('a late request is a 408, headers over the limit a 431, other bytes a 400', () => {
  expect(classify('ERR_HTTP_REQUEST_TIMEOUT')).toMatchObject({ status: 408, code: 'request_timeout' })
  expect(classify('HPE_HEADER_OVERFLOW')).toMatchObject({ status: 431, code: 'headers_too_large' })
  expect(classify('HPE_INVALID_HEADER_TOKEN')).toMatchObject({ status: 400, code: 'malformed_request' })
})

test('an unknown method in a complete request line is a 405 or a 404, by its path', () => {
  expect(classify('HPE_INVALID_METHOD', 'FOO /a HTTP/1.1\r\nhost: b').detail).toContain('thing at /a')
  expect(classify('HPE_INVALID_METHOD', 'FOO /a\x00 HTTP/1.1').code).toBe('malformed_request')
  expect(classify('HPE_INVALID_METHOD', 'FOO').code).toBe('malformed_request')
  expect(classify('HPE_INVALID_METHOD').code).toBe('malformed_request')
})

test('a megabyte that begins like a request line takes linear time', () => {
  for (const text of ['A', 'A ', ' ', 'A / ', '\n']) {
    const before = process.threadCpuUsage()
    classify('HPE_INVALID_METHOD', text.repeat(1_048_576 / text.length))
    const { user, system } = process.threadCpuUsage(before)
    expect((user + system) / 1_000).toBeLessThan(5_000)
  }
})
