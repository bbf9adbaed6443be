import { receiveWebhook } from '@signalbox/webhooks/express'
import express from 'express'
import { onDelivery } from './on-delivery.ts'

const { SIGNALBOX_WEBHOOK_SECRET = '', PORT = '4000' } = process.env
const app = express()

// Before express.json(): a parsed body cannot be verified.
app.post('/webhooks/signalbox', receiveWebhook({ secret: SIGNALBOX_WEBHOOK_SECRET, onDelivery }))
app.use(express.json())

app.listen(Number(PORT), '127.0.0.1', () => console.log(`The receiver listens on http://127.0.0.1:${PORT}`))
