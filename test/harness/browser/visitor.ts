import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'

/** An answer to a visitor. */
export interface Visited {
  url: URL
  status: number
  headers: IncomingMessage['headers']
  body: string
}

/**
 * A client with a cookie jar for each host, which names `*.localhost` resolve for on loopback. It sends a cookie to the paths that
 * it was set for (RFC 6265 section 5.1.4), and follows no redirect by itself.
 */
export interface Visitor {
  visit(
    url: string,
    options?: { method?: string; form?: Record<string, string>; headers?: Record<string, string> },
  ): Promise<Visited>
  /** Visits, then follows redirects by GET, at most ten. Returns every answer. */
  follow(url: string, options?: { method?: string; form?: Record<string, string> }): Promise<Visited[]>
  /** The cookies that a host has set. */
  cookiesOf(url: string): Map<string, string>
}

/** Builds a visitor without any cookie. */
export function buildVisitor(): Visitor {
  const jars = new Map<string, Map<string, string>>()
  /** The paths of cookies, by host and name. */
  const paths = new Map<string, string>()
  const jarOf = (url: URL) => {
    const jar = jars.get(url.hostname) ?? new Map<string, string>()
    jars.set(url.hostname, jar)
    return jar
  }

  const visit: Visitor['visit'] = async (text, { method = 'GET', form, headers = {} } = {}) => {
    const url = new URL(text)
    const jar = jarOf(url)
    const cookies = [...jar].filter(([name]) => isWithin(url.pathname, paths.get(`${url.hostname} ${name}`) ?? '/'))
    const sent = request({
      host: '127.0.0.1',
      port: url.port,
      path: url.pathname + url.search,
      method,
      agent: false,
      headers: {
        host: url.host,
        ...(cookies.length > 0 && { cookie: cookies.map(([name, value]) => `${name}=${value}`).join('; ') }),
        ...(method === 'POST' && { origin: url.origin, 'content-type': 'application/x-www-form-urlencoded' }),
        ...headers,
      },
    })
    sent.end(form && new URLSearchParams(form).toString())
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    const body = Buffer.concat(await response.toArray()).toString()
    for (const cookie of response.headers['set-cookie'] ?? []) {
      const { name, path } = keepCookie(jar, cookie)
      paths.set(`${url.hostname} ${name}`, path)
    }
    return { url, status: response.statusCode ?? 0, headers: response.headers, body }
  }

  return {
    visit,
    follow: async (text, options) => {
      const answers = [await visit(text, options)]
      for (let step = 0; step < 10; step += 1) {
        const { url, headers } = answers.at(-1) as Visited
        if (headers.location === undefined) break
        answers.push(await visit(new URL(headers.location, url).href))
      }
      return answers
    },
    cookiesOf: (text) => jarOf(new URL(text)),
  }
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
}

function keepCookie(jar: Map<string, string>, cookie: string): { name: string; path: string } {
  const [pair = '', ...attributes] = cookie.split('; ')
  const at = pair.indexOf('=')
  const name = pair.slice(0, at)
  if (attributes.includes('Max-Age=0')) jar.delete(name)
  else jar.set(name, pair.slice(at + 1))
  return { name, path: attributes.find((attribute) => /^path=/i.test(attribute))?.slice('path='.length) ?? '/' }
}
