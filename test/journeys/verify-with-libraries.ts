/**
 * A receiver's side, as other programs write it: reads deliveries, each a line of standard input, has them verified by the
 * published libraries of both signature families and by our own package, and prints a line with what each of them said.
 */

import { createInterface } from 'node:readline'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { Webhook as SvixWebhook } from 'svix'
import { verifyDelivery } from '../../packages/webhooks/src/verify-delivery.ts'

interface Delivery {
  headers: Record<string, string>
  body: string
  secret: string
}

async function verify({ headers, body, secret }: Delivery): Promise<Record<string, unknown>> {
  const raw = Buffer.from(body, 'base64')
  const stripe = new Stripe('sk_test_unused')
  const verifiers: Record<string, () => unknown> = {
    stripe: () => stripe.webhooks.constructEvent(raw, headers['x-service-signature'] ?? '', secret),
    standardwebhooks: () => new StandardWebhook(secret).verify(raw.toString('utf8'), headers),
    // It answers nothing and throws on a forgery; the body is then the caller's to read.
    svix: () => {
      new SvixWebhook(secret).verify(raw, headers)
      return JSON.parse(raw.toString('utf8'))
    },
    '@signalbox/webhooks': () => verifyDelivery({ headers, body: raw, secret, require: 'both' }),
  }
  const said: Record<string, unknown> = {}
  for (const [name, verifyBy] of Object.entries(verifiers)) {
    try {
      said[name] = { ok: true, envelope: await verifyBy() }
    } catch (error) {
      said[name] = { ok: false, error: (error as Error).constructor.name }
    }
  }
  return said
}

for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(`${JSON.stringify(await verify(JSON.parse(line) as Delivery))}\n`)
