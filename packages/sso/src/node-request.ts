/** The part of Node's `IncomingMessage` that is used, with what Express puts on it. */
export type NodeRequest = {
  readonly method?: string | undefined
  readonly url?: string | undefined
  /** The whole path, where a router has shortened `url`. */
  readonly originalUrl?: string | undefined
  readonly headers: { readonly [name: string]: string | string[] | undefined }
}

/** The part of Node's `ServerResponse` that is used. */
export type NodeResponse = {
  statusCode: number
  setHeader(name: string, value: string | string[]): unknown
  end(body?: string): unknown
}

/**
 * A Node request as a web-standard one on `origin`, without its body. Undefined for a request target that is no path, such
 * as that of a proxy.
 */
export function toWebRequest(request: NodeRequest, origin: string): Request | undefined {
  const target = request.originalUrl ?? request.url ?? ''
  if (!target.startsWith('/')) return undefined
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers)) {
    // The pseudo headers of HTTP/2 are no headers.
    if (value === undefined || name.startsWith(':')) continue
    for (const item of [value].flat()) headers.append(name, item)
  }
  try {
    return new Request(`${origin}${target}`, { method: request.method ?? 'GET', headers })
  } catch {
    return undefined
  }
}

/** The headers of an answer; each cookie is a header of its own. */
export function listHeaders(answer: Response): [name: string, value: string | string[]][] {
  const plain = [...answer.headers].filter(([name]) => name !== 'set-cookie')
  const cookies = answer.headers.getSetCookie()
  return cookies.length > 0 ? [...plain, ['set-cookie', cookies]] : plain
}

/** Writes an answer. */
export async function respond(response: NodeResponse, answer: Response): Promise<void> {
  const body = await answer.text()
  response.statusCode = answer.status
  for (const [name, value] of listHeaders(answer)) response.setHeader(name, value)
  response.end(body)
}
