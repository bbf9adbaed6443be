import { appendFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { verifyDelivery } from '../../../packages/webhooks/src/verify-delivery.ts'

/** A receiver in a process of its own: it writes the id of each verified delivery to a file before it answers. */
const { RECEIVER_SECRET: secret = '', PORT, DELIVERIES_FILE: file = '' } = process.env
const server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  try {
    const { id } = await verifyDelivery({ headers: request.headers, body: Buffer.concat(chunks), secret })
    appendFileSync(file, `${id}\n`)
    response.writeHead(204).end()
  } catch {
    response.writeHead(401).end()
  }
})
server.listen(Number(PORT), '127.0.0.1', () => process.stdout.write('The receiver listens\n'))
