import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buildScript, renderSignIn, renderWebhooks } from './page.ts'
import { openPortalFor } from './portal-link.ts'

/** A small platform with its own sign-in, whose customers manage their webhooks in the portal of Signalbox. */
const port = Number(process.env.PORT ?? 4004)

/** The customers of the platform. A real one has them in its database, with password hashes that are slow to make. */
const CUSTOMERS = [
  { email: 'ada@acme.example', company: 'Acme', password: 'acme' },
  { email: 'bob@globex.example', company: 'Globex', password: 'globex' },
] as const

type Customer = (typeof CUSTOMERS)[number]

/** Who is signed in, by the value of the cookie. */
const sessions = new Map<string, Customer>()

const digest = (text: string) => createHash('sha256').update(text).digest()

function findCustomer(form: URLSearchParams): Customer | undefined {
  const customer = CUSTOMERS.find(({ email }) => email === form.get('email'))
  return customer && timingSafeEqual(digest(customer.password), digest(form.get('password') ?? ''))
    ? customer
    : undefined
}

const readSession = ({ headers }: IncomingMessage) =>
  sessions.get(/(?:^|; )platform=([\w-]+)/.exec(headers.cookie ?? '')?.[1] ?? '')

/** Characters of a form at most. */
const FORM_LIMIT = 4_096

/** The fields of a form; none of a longer one. */
async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  let text = ''
  for await (const chunk of request) {
    text += chunk
    if (text.length > FORM_LIMIT) return new URLSearchParams()
  }
  return new URLSearchParams(text)
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const customer = readSession(request)
  const show = (status: number, type: string, text: string) =>
    response.writeHead(status, { 'content-type': type }).end(text)
  const html = 'text/html; charset=utf-8'
  switch (`${request.method} ${request.url}`) {
    case 'GET /':
      return void show(200, html, customer ? renderWebhooks(customer) : renderSignIn())
    case 'GET /page.js':
      return void show(200, 'text/javascript', script)
    case 'POST /sign-in': {
      const found = findCustomer(await readForm(request))
      if (!found) return void show(401, html, renderSignIn('The e-mail address or the password is wrong.'))
      const value = randomBytes(32).toString('base64url')
      if (sessions.size >= 1_000) sessions.delete(sessions.keys().next().value ?? '')
      sessions.set(value, found)
      response.setHeader('set-cookie', `platform=${value}; HttpOnly; SameSite=Strict; Path=/`)
      return void response.writeHead(303, { location: '/' }).end()
    }
    // Of the customer who is signed in, and of no other: the page cannot name an account. The cookie is not sent by other sites.
    case 'POST /portal-link':
      return void (customer ? show(200, 'text/plain', await openPortalFor(customer)) : show(401, 'text/plain', ''))
    default:
      return void show(404, 'text/plain', 'Not found')
  }
}

const script = await buildScript()
const server = createServer((request, response) => {
  answer(request, response).catch((error: unknown) => {
    process.stderr.write(`${error}\n`)
    response.writeHead(502).end()
  })
}).listen(port, '127.0.0.1', () => {
  process.stdout.write(`The platform is at http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
})
