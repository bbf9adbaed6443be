import { serve } from '@hono/node-server'
import { receiveWebhook } from '@signalbox/webhooks/hono'
import { Hono } from 'hono'
import { onDelivery } from './on-delivery.ts'

const { SIGNALBOX_WEBHOOK_SECRET = '', PORT = '4000' } = process.env
const app = new Hono()

app.post('/webhooks/signalbox', receiveWebhook({ secret: SIGNALBOX_WEBHOOK_SECRET, onDelivery }))

serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(PORT) }, () => {
  console.log(`The receiver listens on http://127.0.0.1:${PORT}`)
})
