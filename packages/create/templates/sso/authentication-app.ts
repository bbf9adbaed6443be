import { createSso } from '@signalbox/sso'
import { readToken, signOut } from '@signalbox/sso/express'
import express, { type Express, type Request, type Response } from 'express'
import { buildPageHeaders, escapeHtml, renderPage, renderSession } from './page.ts'
import type { Signalbox } from './signalbox.ts'

/** The app where users sign in. It opens the target app for them by a handshake. */
export function buildAuthenticationApp(options: {
  service: string
  signalbox: Signalbox
  origin: string
  targetOrigin: string
}): Express {
  const { signalbox, origin, targetOrigin } = options
  const sso = createSso({ service: options.service, origin })
  const app = express()
  app.disable('x-powered-by')
  app.use((_request, response, next) => {
    response.set(buildPageHeaders(targetOrigin))
    next()
  })

  app.get('/', async (request, response) => {
    const jwt = readToken(sso, request)
    const email = jwt && (await signalbox.findEmail(jwt))
    if (!email) return void response.send(renderPage('Sign in', renderForm()))
    const link = '<p><a href="/open?next=/orders">Open the other app</a></p>'
    response.send(renderPage('App A', link + renderSession(email)))
  })

  // Opens the target app at `next`, for a user who is signed in here.
  app.get('/open', async (request: Request, response: Response) => {
    const next = String(request.query.next ?? '/')
    const jwt = readToken(sso, request)
    const url = jwt && (await signalbox.startHandshake(jwt, { targetUrl: `${targetOrigin}/`, next }))
    if (url) response.set('referrer-policy', 'no-referrer').redirect(303, url)
    else response.send(renderPage('Sign in', renderForm(next)))
  })

  app.post('/sign-in', express.urlencoded({ extended: false, limit: '16kb' }), async (request, response) => {
    // A form of another site must not sign its visitor in as somebody else.
    if (request.headers.origin !== origin) return void response.sendStatus(403)
    const { email = '', password = '', next } = request.body as Record<string, string>
    const jwt = await signalbox.signIn(email, password)
    const alert = '<p role="alert">The e-mail address or the password is wrong.</p>'
    if (!jwt) return void response.send(renderPage('Sign in', alert + renderForm(next)))
    response.set('set-cookie', `signalbox_session=${jwt}; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax`)
    response.redirect(303, next ? `/open?next=${encodeURIComponent(next)}` : '/')
  })

  app.post('/sign-out', signOut(sso))
  return app
}

function renderForm(next?: string): string {
  const hidden = next ? `<input type="hidden" name="next" value="${escapeHtml(next)}">` : ''
  return (
    '<form method="post" action="/sign-in"><p><label>E-mail <input name="email" type="email" required></label></p>' +
    '<p><label>Password <input name="password" type="password" required></label></p>' +
    `${hidden}<button>Sign in</button></form>`
  )
}
