import type { Schemas } from '@signalbox/client'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api } from '../frame/api.ts'
import { useAccess } from '../frame/session.tsx'
import { CopyText } from './copy-text.tsx'
import { TextLink } from './text-link.tsx'

/** Ids whose rows are read at once: a page of a list has at most as many. */
const IDS_LIMIT = 200

const NAMES_FRESH_MS = 60_000

/** Each id once, sorted, so that the same rows ask the same question. */
const distinct = (ids: readonly (string | null)[]) =>
  [...new Set(ids.filter((id) => id !== null))].sort().slice(0, IDS_LIMIT)

/** The users of these ids by id, read in one request; none for a user who may not see users. */
export function useUsers(ids: readonly (string | null)[]): ReadonlyMap<string, Schemas['User']> {
  const { may } = useAccess()
  const asked = distinct(ids)
  const { data } = useQuery({
    queryKey: ['users', 'of', asked],
    queryFn: ({ signal }) => {
      const query = { filters: [`document_id|in|${asked.join(',')}`], page_size: IDS_LIMIT }
      return api.identity.userFindAll({ query, signal })
    },
    enabled: asked.length > 0 && may('user:find-all'),
    staleTime: NAMES_FRESH_MS,
    placeholderData: keepPreviousData,
  })
  return new Map(data?.data.map((user) => [user.document_id, user]))
}

/** The names of the accounts of these ids. */
export function useAccountNames(ids: readonly (string | null)[]): ReadonlyMap<string, string> {
  const { may, session } = useAccess()
  const asked = distinct(ids)
  const { data } = useQuery({
    queryKey: ['accounts', 'of', asked],
    queryFn: ({ signal }) => {
      const query = { filters: [`document_id|in|${asked.join(',')}`], page_size: IDS_LIMIT }
      return api.identity.accountFindAll({ query, signal })
    },
    enabled: asked.length > 0 && may('account:find-all'),
    staleTime: NAMES_FRESH_MS,
    placeholderData: keepPreviousData,
  })
  const shown = data?.data ?? session.accounts
  return new Map(shown.map(({ document_id, name }) => [document_id, name]))
}

/** The names of the apps of these ids; none for a user who may not see apps. */
export function useAppNames(ids: readonly (string | null)[]): ReadonlyMap<string, string> {
  const { may } = useAccess()
  const asked = distinct(ids)
  const { data } = useQuery({
    queryKey: ['apps', 'of', asked],
    queryFn: ({ signal }) => {
      const query = { filters: [`document_id|in|${asked.join(',')}`], page_size: IDS_LIMIT }
      return api.oauth.oauthClientFindAll({ query, signal })
    },
    enabled: asked.length > 0 && may('oauth-client:find-all'),
    staleTime: NAMES_FRESH_MS,
    placeholderData: keepPreviousData,
  })
  return new Map(data?.data.map(({ document_id, name }) => [document_id, name]))
}

/** All roles; none for a user who may not see them. */
export function useRoles(): readonly Schemas['Role'][] {
  const { may } = useAccess()
  const { data } = useQuery({
    queryKey: ['roles', 'all'],
    queryFn: ({ signal }) => api.identity.roleFindAll({ query: { sort: 'name', page_size: 200 }, signal }),
    enabled: may('role:find-all'),
    staleTime: NAMES_FRESH_MS,
  })
  return data?.data ?? []
}

/** A user as a link, by its name where that is known. */
export function UserLink({ id, users }: { id: string | null; users: ReadonlyMap<string, Schemas['User']> }) {
  if (id === null) return <>–</>
  const user = users.get(id)
  if (!user) return <CopyText text={id} isShort />
  return (
    <TextLink to="/users/$id" params={{ id }} size="sm" title={user.email}>
      {user.name ?? user.email}
    </TextLink>
  )
}

/** An account as a link, by its name where that is known. */
export function AccountLink({ id, names }: { id: string | null; names: ReadonlyMap<string, string> }) {
  if (id === null) return <>–</>
  const name = names.get(id)
  if (name === undefined) return <CopyText text={id} isShort />
  return (
    <TextLink to="/accounts/$id" params={{ id }} size="sm">
      {name}
    </TextLink>
  )
}
