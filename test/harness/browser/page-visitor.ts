import type { TestApp } from '../app/app.ts'

/** An answer to a browser. */
export interface PageReply {
  status: number
  body: string
  headers: Record<string, string | string[] | number | undefined>
  location: string | undefined
}

/** A browser without scripts: it keeps cookies with their paths, and sends the forms of the last page. */
export interface PageVisitor {
  get(path: string, headers?: Record<string, string>): Promise<PageReply>
  /** Sends a form. The hidden fields of the last page with a form are added; `fields` override them. */
  post(path: string, fields?: Record<string, string>, headers?: Record<string, string>): Promise<PageReply>
  /** Follows redirects of the service until a page comes. */
  follow(reply: PageReply): Promise<PageReply>
  cookies: Map<string, { value: string; path: string }>
  /** The `Set-Cookie` headers of the last answer. */
  lastCookies(): string[]
}

/** The origin that the forms of a test app come from. */
export const PAGE_ORIGIN = 'https://id.example.test'

/** The variables of a test app whose pages are visited. */
export const PAGE_ENV = { BASE_URL: PAGE_ORIGIN, RATE_LIMIT_STRICT_PER_MINUTE: '100000' }

/** Builds a visitor of the app. Its requests name their site as browsers do. */
export function buildPageVisitor({ app }: TestApp): PageVisitor {
  const cookies: PageVisitor['cookies'] = new Map()
  let hidden: Record<string, string> = {}
  let setCookies: string[] = []
  const keep = (line: string) => {
    const [pair = '', ...attributes] = line.split('; ')
    const at = pair.indexOf('=')
    const [name, value] = [pair.slice(0, at), decodeURIComponent(pair.slice(at + 1))]
    const path = attributes.find((attribute) => attribute.startsWith('Path='))?.slice(5) ?? '/'
    if (attributes.includes('Max-Age=0')) cookies.delete(name)
    else cookies.set(name, { value, path })
  }
  const send = async (url: string, headers: Record<string, string> = {}, payload?: string): Promise<PageReply> => {
    const cookie = [...cookies]
      .filter(([, { path }]) => url.startsWith(path))
      .map(([name, { value }]) => `${name}=${encodeURIComponent(value)}`)
      .join('; ')
    const answer = await app.server.inject({
      method: payload === undefined ? 'GET' : 'POST',
      url,
      headers: {
        accept: 'text/html',
        'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36',
        ...(cookie !== '' && { cookie }),
        ...(payload !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }),
        ...headers,
      },
      ...(payload !== undefined && { payload }),
    })
    setCookies = [answer.headers['set-cookie'] ?? []].flat()
    for (const line of setCookies) keep(line)
    const found = [...answer.body.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)]
    if (found.length > 0)
      hidden = Object.fromEntries(found.map(([, name, value]) => [name, value?.replaceAll('&amp;', '&') ?? '']))
    const { location } = answer.headers
    return { status: answer.statusCode, body: answer.body, headers: answer.headers, location }
  }
  const visitor: PageVisitor = {
    get: send,
    post: (path, fields = {}, headers = { origin: PAGE_ORIGIN, 'sec-fetch-site': 'same-origin' }) =>
      send(path, headers, new URLSearchParams({ ...hidden, ...fields }).toString()),
    follow: async (reply) => {
      let last = reply
      for (let count = 0; last.location?.startsWith('/') && count < 5; count += 1)
        last = await visitor.get(last.location)
      return last
    },
    cookies,
    lastCookies: () => setCookies,
  }
  return visitor
}
