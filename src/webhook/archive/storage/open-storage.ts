import { ArchiveError } from './archive-error.ts'
import type { S3Deps } from './s3-client.ts'
import type { Storage } from './storage.ts'

/** Variables of the environment, with the names that other programs use. */
export interface StorageEnvironment {
  AWS_ACCESS_KEY_ID?: string | undefined
  AWS_SECRET_ACCESS_KEY?: string | undefined
  AWS_SESSION_TOKEN?: string | undefined
  AWS_REGION?: string | undefined
  AWS_ENDPOINT_URL_S3?: string | undefined
}

/** A bucket and what its names begin with: empty, or with a slash at its end. */
export interface BucketPlace {
  bucket: string
  prefix: string
}

/** The bucket of `s3://bucket/prefix`; undefined for a folder. Throws for a malformed one. Pure. */
export function parsePlace(place: string): BucketPlace | undefined {
  if (!/^[a-z0-9+.-]+:\/\//i.test(place)) return undefined
  const [, bucket, path = ''] =
    /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([A-Za-z0-9._/-]{0,512}))?$/.exec(place) ?? []
  const parts = path.split('/').filter((part) => part !== '')
  if (bucket === undefined || parts.some((part) => part === '.' || part === '..'))
    throw new ArchiveError(
      'place_invalid',
      'The place must be a folder, or s3://bucket/prefix with letters, digits, ., _ and - in its parts.',
    )
  return { bucket, prefix: parts.map((part) => `${part}/`).join('') }
}

const endpointOf = (region: string) => `https://s3.${region}.amazonaws.com`

/** Opens a folder or a bucket. Throws an `ArchiveError` for a malformed place or missing credentials. */
export async function openStorage(
  place: string,
  given: S3Deps & { environment: StorageEnvironment; isWritten: boolean },
): Promise<Storage> {
  const found = parsePlace(place)
  if (!found) {
    const { openFolder } = await import('./folder-storage.ts')
    return openFolder(place, given)
  }
  const { environment } = given
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = environment
  if (!accessKeyId || !secretAccessKey)
    throw new ArchiveError(
      'credentials_missing',
      'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SECRET_ACCESS_KEY_FILE, for object storage.',
    )
  const region = environment.AWS_REGION || 'us-east-1'
  if (!/^[a-z0-9-]{1,64}$/.test(region))
    throw new ArchiveError('place_invalid', 'AWS_REGION must be a region such as eu-central-1.')
  const endpoint = environment.AWS_ENDPOINT_URL_S3 || endpointOf(region)
  if (!isEndpoint(endpoint))
    throw new ArchiveError('place_invalid', 'AWS_ENDPOINT_URL_S3 must be a URL like https://storage.example.com.')
  const { openS3 } = await import('./s3-storage.ts')
  const sessionToken = environment.AWS_SESSION_TOKEN || undefined
  return openS3({ ...found, endpoint, region, accessKeyId, secretAccessKey, sessionToken }, given)
}

function isEndpoint(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return (
    url !== undefined &&
    (url.protocol === 'https:' || url.protocol === 'http:') &&
    [url.username, url.password, url.search, url.hash].every((part) => part === '')
  )
}
