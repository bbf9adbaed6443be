import { receiveWebhook } from '@signalbox/webhooks/next'
import { onDelivery } from '../../../on-delivery.ts'

export const POST = receiveWebhook({
  // A function: `next build` runs without the variable.
  secret: () => process.env.SIGNALBOX_WEBHOOK_SECRET ?? '',
  onDelivery,
})
