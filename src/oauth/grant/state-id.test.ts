import { expect, test } from 'vitest'
import { disguiseJwt, readJwtTokenId, revealJwt } from './state-id.ts'

test.each(['a.b.c', 'opaque', 'grant.', 'a.b.', '.', 'a.b.c.d', 'a.b.c.d.e', ''])('%j is read as it was', (text) => {
  expect(revealJwt(disguiseJwt(text))).toBe(text)
})

test('a JWT is disguised, and nothing else', () => {
  expect(['a.b.c', 'grant.own', 'a.b.c.d'].map(disguiseJwt)).toEqual(['a.b.c.', 'grant.own', 'a.b.c.d'])
  expect(['a.b.c.', 'a.b.c.d', 'opaque.'].map(revealJwt)).toEqual(['a.b.c', 'a.b.c.d', 'opaque.'])
})

test('a token is known by its id and its whole text', () => {
  const encode = (claims: unknown) => Buffer.from(JSON.stringify(claims)).toString('base64url')
  const token = `e30.${encode({ jti: 'one' })}.x`
  const read = readJwtTokenId(token)
  expect(read).toMatchObject({ jti: 'one', claims: { jti: 'one' } })
  expect(readJwtTokenId(`${token}y`)?.tokenHash).not.toBe(read?.tokenHash)
  for (const other of [`e30.${encode({ jti: 1 })}.x`, `e30.${encode({})}.x`, 'e30.!.x', `${token}.`, 'opaque'])
    expect(readJwtTokenId(other)).toBeUndefined()
})
