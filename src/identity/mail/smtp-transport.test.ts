import { expect, test } from 'vitest'
import { buildSmtpTransport, listRefusedSmtpOptions, listUnsubscribe } from './smtp-transport.ts'

const list = (query: string) => listRefusedSmtpOptions(new URL(`smtp://u:p@mail.example?${query}`))

test.each(['ignoreTLS=true', 'requireTLS=true', 'name=relay-1.example', 'pool=true&maxConnections=20&maxMessages=100'])(
  'an SMTP URL with the options %s is taken',
  (query) => {
    expect(list(query)).toEqual([])
  },
)

test.each([
  ['requireTLS=false', 'requireTLS'],
  ['ignoreTLS=false&ignoreTLS=true', 'ignoreTLS'],
  ['tls.rejectUnauthorized=false', 'tls.rejectUnauthorized'],
  ['secure=false', 'secure'],
  ['constructor=1', 'constructor'],
  ['pool=true&name=', 'name'],
])('an SMTP URL with the options %s is refused for %s', (query, name) => {
  expect(list(query)).toEqual([name])
  const url = `smtp://u:p@mail.example?${query}`
  expect(() => buildSmtpTransport({ url, from: 'a@b.example' })).toThrow('SMTP_URL')
})

test('one click is offered over HTTPS alone', () => {
  expect(listUnsubscribe(undefined)).toEqual({})
  expect(listUnsubscribe('http://localhost:3000/x')).toEqual({ 'List-Unsubscribe': '<http://localhost:3000/x>' })
  expect(listUnsubscribe('https://id.example/x')).toEqual({
    'List-Unsubscribe': '<https://id.example/x>',
    'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
  })
})
