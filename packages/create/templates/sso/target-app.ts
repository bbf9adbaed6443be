import { createSso } from '@signalbox/sso'
import { readToken, receiveHandshake, signOut } from '@signalbox/sso/fastify'
import fastify, { type FastifyInstance } from 'fastify'
import { buildPageHeaders, escapeHtml, renderPage, renderSession } from './page.ts'
import type { Signalbox } from './signalbox.ts'

/** An app on another domain, whose users sign in at the authentication app. */
export async function buildTargetApp(options: {
  service: string
  signalbox: Signalbox
  origin: string
  authenticationOrigin: string
}): Promise<FastifyInstance> {
  const { signalbox, origin, authenticationOrigin } = options
  const sso = createSso({ service: options.service, origin })
  const app = fastify()
  // The form of the sign-out has no fields.
  const parsing = { parseAs: 'string' } as const
  app.addContentTypeParser('application/x-www-form-urlencoded', parsing, (_request, _body, done) => done(null))
  await app.register(receiveHandshake(sso))
  const renderLink = (path: string) => {
    const url = `${authenticationOrigin}/open?next=${encodeURIComponent(path)}`
    return `<p><a href="${escapeHtml(url)}">Sign in</a></p>`
  }

  app.get('/', async (request, reply) => {
    reply.headers(buildPageHeaders())
    const jwt = readToken(sso, request)
    const email = jwt && (await signalbox.findEmail(jwt))
    return renderPage('App B', email ? renderSession(email) : renderLink('/'))
  })

  // A page for users with a session. Others go to the authentication app, unless that has just failed.
  app.get('/orders', async (request, reply) => {
    reply.headers(buildPageHeaders())
    const jwt = readToken(sso, request)
    const email = jwt && (await signalbox.findEmail(jwt))
    if (email) return renderPage('Orders', renderSession(email))
    if (sso.mayStart(new Request(`${origin}${request.url}`, { headers: { cookie: request.headers.cookie ?? '' } })))
      return reply.redirect(`${authenticationOrigin}/open?next=${encodeURIComponent('/orders')}`, 303)
    const alert = '<p role="alert">That did not work. Please try again.</p>'
    return renderPage('App B', alert + renderLink('/orders'))
  })

  app.post('/sign-out', signOut(sso))
  return app
}
