import { expect } from 'vitest'
import { computeTotp, findStep } from '../../../src/identity/sign-in/second-factor/totp.ts'
import type { IdentityApp, User } from '../app/identity-app.ts'

/** A user with a confirmed authenticator app. */
export interface FactorUser extends User {
  secret: Buffer
  recoveryCodes: string[]
}

/** The bytes of a base32 text (RFC 4648 section 6). */
export function decodeBase32(text: string): Buffer {
  const bits = [...text].map((letter) =>
    'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0'),
  )
  return Buffer.from((bits.join('').match(/[01]{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
}

/** The code that an authenticator app shows now, or some steps from now. */
export function codeOf(app: Pick<IdentityApp, 'clock'>, secret: Buffer, steps = 0): string {
  return computeTotp(secret, findStep(app.clock.now()) + steps)
}

/**
 * A new user who enrols an app and confirms it. The clock then advances by a step, because the code that confirmed is
 * used.
 */
export async function enrolUser(
  app: IdentityApp,
  name: string,
  options: { password: string; address: string; roles?: readonly string[] },
): Promise<FactorUser> {
  const { password, address, roles = [] } = options
  const user = await app.user(name, roles, password)
  const { token } = user
  const enrolled = await app.call('POST', '/api/v3/auth/factor/totp', { token, address })
  expect(enrolled.status).toBe(201)
  const secret = decodeBase32(enrolled.body.data.secret)
  const body = { code: codeOf(app, secret) }
  const confirmed = await app.call('POST', '/api/v3/auth/factor/totp/confirm', { token, address, body })
  expect(confirmed.status).toBe(200)
  app.clock.advance(30_000)
  return { ...user, secret, recoveryCodes: confirmed.body.data.recovery_codes }
}
