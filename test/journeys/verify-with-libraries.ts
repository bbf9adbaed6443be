/**
 * A receiver's side, as other programs write it: reads one delivery, a line of standard input, has it verified by the
 * published libraries of both signature families and by our own package, and prints what each of them said.
 */

import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { Webhook as SvixWebhook } from 'svix'
import { verifyDelivery } from '../../packages/webhooks/src/verify-delivery.ts'

const [line] = await once(createInterface({ input: process.stdin }), 'line')
process.stdin.destroy()
const { headers, body, secret } = JSON.parse(line) as {
  headers: Record<string, string>
  body: string
  secret: string
}
const raw = Buffer.from(body, 'base64')

const verifiers: Record<string, () => unknown> = {
  stripe: () => new Stripe('sk_test_unused').webhooks.constructEvent(raw, headers['x-service-signature'] ?? '', secret),
  standardwebhooks: () => new StandardWebhook(secret).verify(raw.toString('utf8'), headers),
  // It answers nothing and throws on a forgery; the body is then the caller's to read.
  svix: () => {
    new SvixWebhook(secret).verify(raw, headers)
    return JSON.parse(raw.toString('utf8'))
  },
  '@signalbox/webhooks': () => verifyDelivery({ headers, body: raw, secret, require: 'both' }),
}

const said: Record<string, unknown> = {}
for (const [name, verify] of Object.entries(verifiers)) {
  try {
    said[name] = { ok: true, envelope: await verify() }
  } catch (error) {
    said[name] = { ok: false, error: (error as Error).constructor.name }
  }
}
process.stdout.write(JSON.stringify(said))
