import type { TextKey } from '../../../base/language/texts.ts'
import { Problem } from '../../../http/problem/problem.ts'
import type { RefusalOutcome, Routes } from '../../../http/route/route.ts'
import { isLine } from '../../../http/route/schema.ts'
import { isEmailAddress } from '../../../http/shape/formats.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { cancelEmailChange, requestEmailChange } from '../../user/own/email-change.ts'
import { changeOwnName, deleteOwnUser, loadOwnUser } from '../../user/own/own-user.ts'
import type { LinkDeps } from '../../user/password/password-reset.ts'
import { IMAGE_LENGTH_LIMIT, PICTURE_BODY_LIMIT_BYTES } from '../../user/picture/picture.routes.ts'
import { preparePicture, removeOwnPicture, setOwnPicture } from '../../user/picture/picture.ts'
import type { SignedInUser, Visitor } from '../browser/browser-session.ts'
import { findNotice } from '../frame/notice.ts'
import { buildPage } from '../frame/page.ts'
import { type PageDeps, refusePage } from '../frame/page-route.ts'
import { buildSignInUrl, redirectTo } from '../frame/page-url.ts'
import { defineUserPage } from '../frame/user-page.ts'
import { buildProfilePage, PROFILE, type ProfileForm } from './profile-page.ts'

type ProfilePageDeps = PageDeps & LinkDeps

const NOTICES = {
  'name-saved': 'profile.name-saved',
  'picture-set': 'profile.picture-set',
  'picture-removed': 'profile.picture-removed',
  'email-sent': 'profile.email-sent',
  'email-cancelled': 'profile.email-cancelled',
} as const

/** Messages of the forms of the page, by the code or the reason of the problem of their operation. */
const MESSAGES: Readonly<Record<string, TextKey>> = {
  unsafe_character: 'profile.name-unsafe',
  blank: 'profile.name-blank',
  too_long: 'profile.name-long',
  too_large: 'profile.picture-large',
  too_many_pixels: 'profile.picture-large',
  not_an_image: 'profile.picture-unreadable',
  not_base64: 'profile.picture-unreadable',
  overloaded: 'profile.picture-later',
  format: 'profile.email-invalid',
  unchanged: 'profile.email-same',
  limit_reached: 'profile.email-limit',
  dependency_unavailable: 'profile.email-no-mail',
  not_your_address: 'profile.delete-wrong',
  last_account_administrator: 'profile.delete-last-account',
  last_administrator: 'profile.delete-last-administrator',
  accounts_changed: 'profile.delete-again',
}

const NAME_LENGTH = 200

/** A name that the schema of the API would refuse, as the code of its rule. */
function checkTypedName(name: string): void {
  if (isLine(name, NAME_LENGTH)) return
  const code = name.length > NAME_LENGTH ? 'too_long' : 'unsafe_character'
  throw new Problem('validation_failed', 'The name breaks a rule.', { reason: code })
}

function checkTypedEmail(email: string): void {
  if (isEmailAddress(email) && email.length <= 254) return
  throw new Problem('validation_failed', 'The e-mail address is not valid.', { reason: 'format' })
}

/** Shows the page again with the fault. Throws a problem without a text. */
async function refuseForm(
  deps: ProfilePageDeps,
  db: Database,
  refused: { error: unknown; field: string; form?: ProfileForm; user: SignedInUser; visitor: Visitor; now: Date },
): Promise<RefusalOutcome> {
  const { error, field, form, user: signedIn, visitor, now } = refused
  if (!(error instanceof Problem)) throw error
  const text = [error.errors?.[0]?.code, error.reason, error.code].map((name) => MESSAGES[name ?? '']).find(Boolean)
  if (!text) throw error
  const user = await loadOwnUser(db, { caller: signedIn.caller, now })
  const errors = [{ field, text: visitor.texts.say(text) }]
  const page = buildProfilePage(deps, { ...visitor, user, errors, ...(form && { form }) })
  return refusePage(deps, { problem: error, page, target: signedIn.userId })
}

const returnWith = (notice: keyof typeof NOTICES) => redirectTo(`${PROFILE}?notice=${notice}`)

/** The own profile of a user (docs/contract/pages.md#profile). */
export const profilePageRoutes: Routes<ProfilePageDeps> = [
  defineUserPage(
    { path: PROFILE, resource: 'profile-page', summary: 'The profile of the user', query: ['notice'] },
    async (deps: ProfilePageDeps, { db, user: signedIn, visitor, query, now }) => {
      const user = await loadOwnUser(db, { caller: signedIn.caller, now })
      const notice = findNotice(visitor.texts, NOTICES, query.notice)
      return buildPage({ brand: deps.brand, ...buildProfilePage(deps, { ...visitor, user, notice }) })
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: `${PROFILE}/name`,
      resource: 'user',
      action: 'update-own',
      eventAction: 'update',
      returnTo: PROFILE,
      summary: 'Change the own name with the form',
      fields: { name: 1024 },
    },
    async (deps: ProfilePageDeps, { db, user, visitor, form, now }) => {
      const name = form.name.trim()
      try {
        if (name !== '') checkTypedName(name)
        const { after } = await changeOwnName(db, { caller: user.caller, name: name === '' ? null : name, now })
        return { ...returnWith('name-saved'), changed: after ? [{ id: after.id, account: null }] : [] }
      } catch (error) {
        return refuseForm(deps, db, { error, field: 'name', form: { name: form.name }, user, visitor, now })
      }
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: `${PROFILE}/picture`,
      resource: 'user',
      action: 'set-picture',
      eventAction: 'update',
      returnTo: PROFILE,
      bodyLimitBytes: PICTURE_BODY_LIMIT_BYTES,
      summary: 'Set the own picture with the form',
      fields: { image: IMAGE_LENGTH_LIMIT },
    },
    {
      prepare: async (_deps: ProfilePageDeps, { user, form }): Promise<{ content: Buffer } | { error: unknown }> => {
        try {
          return { content: await preparePicture(user.caller, form.image) }
        } catch (error) {
          return { error }
        }
      },
      handle: async (deps, { db, user, visitor, prepared, now }) => {
        if ('error' in prepared)
          return refuseForm(deps, db, { error: prepared.error, field: 'picture', user, visitor, now })
        const { content } = prepared
        const { after } = await setOwnPicture(deps, db, { caller: user.caller, content, now })
        return { ...returnWith('picture-set'), changed: [{ id: after.id, account: null }] }
      },
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: `${PROFILE}/picture/remove`,
      resource: 'user',
      action: 'remove-picture',
      eventAction: 'update',
      returnTo: PROFILE,
      summary: 'Remove the own picture with the form',
    },
    async (_deps: ProfilePageDeps, { db, user, now }) => {
      const { after } = await removeOwnPicture(db, { caller: user.caller, now })
      return { ...returnWith('picture-removed'), changed: after ? [{ id: after.id, account: null }] : [] }
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: `${PROFILE}/email`,
      resource: 'user',
      action: 'request-email-change',
      fresh: 'sign-in',
      returnTo: PROFILE,
      summary: 'Ask for another own address with the form',
      fields: { email: 320 },
    },
    async (deps: ProfilePageDeps, { db, user, visitor, form, now }) => {
      const email = form.email.trim()
      try {
        checkTypedEmail(email)
        await requestEmailChange(deps, db, { caller: user.caller, email, texts: visitor.texts, now })
      } catch (error) {
        return refuseForm(deps, db, { error, field: 'email', form: { email }, user, visitor, now })
      }
      return { ...returnWith('email-sent'), changed: [{ id: user.userId, account: null }] }
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: `${PROFILE}/email/cancel`,
      resource: 'user',
      action: 'cancel-email-change',
      returnTo: PROFILE,
      summary: 'Withdraw the change of the own address with the form',
    },
    async (_deps: ProfilePageDeps, { db, user, now }) => {
      await cancelEmailChange(db, { caller: user.caller, now })
      return { ...returnWith('email-cancelled'), changed: [{ id: user.userId, account: null }] }
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: `${PROFILE}/delete`,
      resource: 'user',
      action: 'delete-own',
      eventAction: 'delete',
      fresh: 'sign-in',
      returnTo: PROFILE,
      summary: 'Delete the own user with the form',
      fields: { confirmation: 320 },
    },
    async (deps: ProfilePageDeps, { db, user, visitor, form, now }) => {
      try {
        await deleteOwnUser(db, { caller: user.caller, email: form.confirmation.trim(), now })
      } catch (error) {
        return refuseForm(deps, db, { error, field: 'confirmation', user, visitor, now })
      }
      return {
        ...redirectTo(buildSignInUrl({ notice: 'deleted' })),
        cookies: deps.cookies.signOut(),
        changed: [{ id: user.userId, account: null }],
      }
    },
  ),
]
