import { receiveWebhook } from '@signalbox/webhooks/fastify'
import fastify from 'fastify'
import { onDelivery } from './on-delivery.ts'

const { SIGNALBOX_WEBHOOK_SECRET = '', PORT = '4000' } = process.env
const app = fastify()

await app.register(receiveWebhook({ path: '/webhooks/signalbox', secret: SIGNALBOX_WEBHOOK_SECRET, onDelivery }))

await app.listen({ host: '127.0.0.1', port: Number(PORT) })
console.log(`The receiver listens on http://127.0.0.1:${PORT}`)
