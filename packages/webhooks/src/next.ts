import { receiveWebhook as receiveFetch } from './fetch.ts'
import { type NodeRequest, type NodeResponse, readNodeBody, respondJson } from './node-request.ts'
import { type ReceiveOptions, receiveDelivery } from './receive-delivery.ts'

export type { ReceiveOptions } from './receive-delivery.ts'

/**
 * Builds a Next.js route handler (App Router): `export const POST = receiveWebhook({ ... })` in `route.ts`.
 * Node and edge runtime. Give `secret` as a function, so that `next build` does not need the variable.
 */
export function receiveWebhook(options: ReceiveOptions<Request>): (request: Request) => Promise<Response> {
  return receiveFetch(options)
}

/**
 * Builds a Next.js API route (Pages Router). The page must also say `export const config = { api: { bodyParser: false } }`,
 * because Next parses the body otherwise and the request ends as `body_not_raw`.
 */
export function receivePagesWebhook<ApiRequest extends NodeRequest & { readonly method?: string | undefined }>(
  options: ReceiveOptions<ApiRequest>,
): (request: ApiRequest, response: NodeResponse) => Promise<void> {
  return async (request, response) => {
    if (request.method !== 'POST') {
      response.setHeader('allow', 'POST')
      return respondJson(response, { status: 405, body: { message: 'This path accepts POST only.' } })
    }
    const readBody = () => readNodeBody(request, options.maxBodyBytes)
    respondJson(response, await receiveDelivery(options, { headers: request.headers, readBody, context: request }))
  }
}
