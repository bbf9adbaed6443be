import { Group } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
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

/** A list that is read by ids. */
interface ListOfIds<Row> {
  /** First part of the key of its cached pages. */
  key: string
  permission: string
  read: (given: { query: { filters: string[]; page_size: number }; signal: AbortSignal }) => Promise<{ data: Row[] }>
}

/** The rows of these ids, read in one request; undefined before, and for a user without the permission. */
function useRowsOf<Row>(ids: readonly (string | null)[], { key, permission, read }: ListOfIds<Row>): Row[] | undefined {
  const { may } = useAccess()
  const asked = distinct(ids)
  const { data } = useQuery({
    queryKey: [key, 'of', asked],
    queryFn: ({ signal }) => {
      const query = { filters: [`document_id|in|${asked.join(',')}`], page_size: IDS_LIMIT }
      return read({ query, signal })
    },
    enabled: asked.length > 0 && may(permission),
    staleTime: NAMES_FRESH_MS,
    placeholderData: keepPreviousData,
  })
  return data?.data
}

const nameById = (rows: readonly { document_id: string; name: string }[] | undefined) =>
  new Map(rows?.map(({ document_id, name }) => [document_id, name]))

/** The users of these ids by id, read in one request; none for a user who may not see users. */
export function useUsers(ids: readonly (string | null)[]): ReadonlyMap<string, Schemas['User']> {
  const users = useRowsOf(ids, { key: 'users', permission: 'user:find-all', read: api.identity.userFindAll })
  return new Map(users?.map((user) => [user.document_id, user]))
}

/** The names of the accounts of these ids. */
export function useAccountNames(ids: readonly (string | null)[]): ReadonlyMap<string, string> {
  const { session } = useAccess()
  const list = { key: 'accounts', permission: 'account:find-all', read: api.identity.accountFindAll }
  return nameById(useRowsOf(ids, list) ?? session.accounts)
}

/** The names of the apps of these ids; none for a user who may not see apps. */
export function useAppNames(ids: readonly (string | null)[]): ReadonlyMap<string, string> {
  return nameById(
    useRowsOf(ids, { key: 'apps', permission: 'oauth-client:find-all', read: api.oauth.oauthClientFindAll }),
  )
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

/** The roles for members of an account; none for a user who may not see them. */
export function useAccountRoles(account: string): readonly Schemas['AccountRole'][] {
  const { may } = useAccess()
  const { data } = useQuery({
    queryKey: ['roles', 'of-account', account],
    queryFn: ({ signal }) =>
      api.identity.accountMemberFindRoles({
        path: { id: account },
        query: { sort: 'name', page_size: IDS_LIMIT },
        signal,
      }),
    enabled: may('account-member:find-roles'),
    staleTime: NAMES_FRESH_MS,
  })
  return data?.data ?? []
}

/** An address, whose line breaks before its host. */
function Email({ address }: { address: string }) {
  const at = address.lastIndexOf('@')
  return (
    <>
      {address.slice(0, at)}
      <wbr />
      {address.slice(at)}
    </>
  )
}

/** A user as a link, by its name where that is known. */
export function UserLink({ id, users }: { id: string | null; users: ReadonlyMap<string, Schemas['User']> }) {
  if (id === null) return <>–</>
  const user = users.get(id)
  if (!user) return <CopyText text={id} isShort />
  return (
    <TextLink to="/users/$id" params={{ id }} size="sm" title={user.email}>
      {user.name ?? <Email address={user.email} />}
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

/** One account as a fact: its name, and its id to copy. */
export function Account({ id }: { id: string }) {
  const names = useAccountNames([id])
  if (!names.has(id)) return <CopyText text={id} />
  return (
    <Group gap="xs">
      <AccountLink id={id} names={names} />
      <CopyText text={id} isShort />
    </Group>
  )
}

/** One account by its name where that is known, without a link: for a form that is not sent yet. */
export function AccountName({ id }: { id: string }) {
  const { t } = useTranslation()
  return <>{t('webhooks.of-account-named', { name: useAccountNames([id]).get(id) ?? id })}</>
}
