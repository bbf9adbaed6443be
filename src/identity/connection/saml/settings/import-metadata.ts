import { buildFieldProblem, invalidField, Problem } from '../../../../http/problem/problem.ts'
import { findOwnFault, type GuardedFetch, GuardedFetchError } from '../../../../outbound/guarded-fetch.ts'
import { XML_LIMITS } from '../xml/xml-fault.ts'
import { type IdpMetadata, readIdpMetadata } from './idp-metadata.ts'

/** Dependencies of reading the metadata of a provider. */
export interface MetadataDeps {
  /** For the URL that a caller gives. */
  fetch: GuardedFetch
}

/** Reads metadata, given or by URL (docs/contract/saml.md#metadata-of-the-provider). Throws 422, 503 for our fault. */
export async function importMetadata(
  { fetch }: MetadataDeps,
  input: { metadata?: string; metadata_url?: string; now: Date },
): Promise<IdpMetadata> {
  const { metadata, metadata_url: url, now } = input
  if ((metadata === undefined) === (url === undefined))
    throw invalidField('metadata', 'required', 'or metadata_url is required, and not both')
  const path = url === undefined ? 'metadata' : 'metadata_url'
  const bytes = url === undefined ? Buffer.from(metadata ?? '') : await fetchMetadata(fetch, url)
  const read = readIdpMetadata(bytes, now)
  if ('code' in read) throw buildFieldProblem({ path, code: read.code, message: read.message, params: read.params })
  return read
}

async function fetchMetadata(fetch: GuardedFetch, url: string): Promise<Uint8Array> {
  const headers = { accept: 'application/samlmetadata+xml, application/xml;q=0.9, */*;q=0.1' }
  const refuse = (message: string) => invalidField('metadata_url', 'not_read', message)
  const response = await fetch(url, { method: 'GET', headers }).catch((error: unknown) => {
    if (!(error instanceof GuardedFetchError)) throw error
    if (findOwnFault(error)) throw buildOwnFault(error)
    // The caller learns the class of the failure, never an address.
    throw refuse(`is not answered (${error.errorClass}); paste the metadata instead`)
  })
  if (response.status !== 200) throw refuse(`is answered with ${response.status}, not 200; redirects are not followed`)
  const bytes = new Uint8Array(await response.arrayBuffer())
  if (bytes.length > XML_LIMITS.bytes) throw refuse('has more than 128 KiB')
  return bytes
}

function buildOwnFault(error: GuardedFetchError): Problem {
  return new Problem('dependency_unavailable', 'This service cannot ask the provider at the moment. Try again soon.', {
    headers: { 'retry-after': '10' },
    reason: error.message,
    cause: error,
  })
}
