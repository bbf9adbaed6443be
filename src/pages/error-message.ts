import type { ProblemCode } from '../http/problem.ts'

/** What a person reads for an error. The reason is in the log and in the audit log. */
export interface ErrorMessage {
  title: string
  /** What happened and what to do, in one or two sentences. */
  text: string
}

const NOT_FOUND: ErrorMessage = {
  title: 'Page not found',
  text: 'There is nothing at this address. It may be misspelt, or the link may be old.',
}

const MALFORMED: ErrorMessage = {
  title: 'This request is damaged',
  text: 'The address or the form did not arrive as it was sent. Open the page again and repeat the step.',
}

const UNAVAILABLE: ErrorMessage = {
  title: 'Not available right now',
  text: 'Something that this page needs does not answer at the moment. Try again in a few seconds.',
}

/** The errors that have words of their own. Any other code gets `UNKNOWN`. */
const MESSAGES: Partial<Record<ProblemCode, ErrorMessage>> = {
  not_found: NOT_FOUND,
  method_not_allowed: NOT_FOUND,
  malformed_request: MALFORMED,
  validation_failed: MALFORMED,
  body_too_large: MALFORMED,
  unsupported_media_type: MALFORMED,
  overloaded: UNAVAILABLE,
  dependency_unavailable: UNAVAILABLE,
  rate_limited: {
    title: 'Too many attempts',
    text: 'There were too many requests from your network. Wait a minute, then try again.',
  },
  form_refused: {
    title: 'Open the page again',
    text: 'This form is no longer valid, or your browser did not send its cookie. Open the page again and repeat the step. This site needs cookies to sign you in.',
  },
  link_invalid: {
    title: 'This link no longer works',
    text: 'It was used, has expired, or was replaced by a newer one. Ask for a new link.',
  },
  redirect_url_not_allowed: {
    title: 'This link does not work',
    text: 'The app that sent you here asks to return to an address that is not registered for it. Tell the people who run the app.',
  },
  unauthenticated: { title: 'You are signed out', text: 'Your session has ended. Sign in to continue.' },
  social_login_failed: {
    title: 'You were not signed in',
    text: 'The sign-in took too long, was started in another browser, or was declined. Start it again.',
  },
  email_required: {
    title: 'An e-mail address is needed',
    text: 'The service you signed in with shares no e-mail address of yours. Allow it to share one, or sign in another way.',
  },
  email_not_verified: {
    title: 'Confirm your e-mail address first',
    text: 'The service you signed in with has not confirmed your e-mail address. Confirm it there, or sign in another way.',
  },
  identity_not_linked: {
    title: 'Sign in the way you did before',
    text: 'There is already somebody with your e-mail address here. Sign in as before, then connect this service in your profile.',
  },
  provider_unknown: {
    title: 'This sign-in does not exist',
    text: 'Nobody can sign in with this service here. Choose another one.',
  },
  second_factor_failed: {
    title: 'You were not signed in',
    text: 'The code or the passkey was not accepted, or the sign-in took too long. Start it again.',
  },
  fresh_factor_required: {
    title: 'Confirm that it is you',
    text: 'This step needs a confirmation of the last ten minutes. Open the page again and confirm.',
  },
  conflict: {
    title: 'That is not possible now',
    text: 'Something has changed since you opened the page, or this is your last way to sign in. Open the page again.',
  },
  limit_reached: { title: 'There are enough of them', text: 'You have as many as are possible. Remove one first.' },
  permission_denied: { title: 'No access', text: 'You are signed in, but you may not do this.' },
}

const UNKNOWN: ErrorMessage = {
  title: 'Something went wrong',
  text: 'The step could not be finished. Try again; if it happens again, tell the people who run this service.',
}

/** The message for a code; the same general one for every code that is not known. */
export function findErrorMessage(code: string): ErrorMessage {
  return (Object.hasOwn(MESSAGES, code) && MESSAGES[code as ProblemCode]) || UNKNOWN
}
