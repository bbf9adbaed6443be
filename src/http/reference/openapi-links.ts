import type { Operation } from './openapi-document.ts'

type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>

/** Adds links to each answer that creates a resource, for test generators: the operations on it, with its id. */
export function addLinks(paths: Paths): Record<string, Record<string, Operation>> {
  const linked = Object.entries(paths).map(([path, item]) => {
    const { post } = item
    const created = post?.responses['201']
    if (!post || !created) return [path, item]
    const links = buildLinks(paths, `${path}/{id}`)
    if (Object.keys(links).length === 0) return [path, item]
    return [path, { ...item, post: { ...post, responses: { ...post.responses, 201: { ...created, links } } } }]
  })
  return Object.fromEntries(linked)
}

function buildLinks(paths: Paths, itemPath: string): Record<string, object> {
  const operations = Object.entries(paths)
    .filter(([path]) => path === itemPath || path.startsWith(`${itemPath}/`))
    .flatMap(([, item]) => Object.values(item))
  return Object.fromEntries(
    operations.map(({ operationId }) => [
      operationId,
      { operationId, parameters: { id: '$response.body#/data/document_id' } },
    ]),
  )
}
