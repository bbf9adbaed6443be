import type { TestApp } from '../app/app.ts'

/** A mail that the service sent in a test. */
export interface ReceivedMail {
  to: string
  subject: string
  text: string
  /** The token of its link. */
  token: string
}

/** Sends the mails that are due and returns those to this address, the newest first. */
export async function readMails({ app, anonymous }: TestApp, to: string): Promise<ReceivedMail[]> {
  await app.mailWorker.drain()
  const { body } = await anonymous('GET', '/auth/mail')
  return (body.data as Omit<ReceivedMail, 'token'>[])
    .filter((mail) => mail.to === to)
    .map((mail) => ({ ...mail, token: /[?&]token=([\w-]+)/.exec(mail.text)?.[1] ?? '' }))
}

/** Asks for a mail to sign in, and returns what the API takes to finish. */
export async function beginMailLogin(app: TestApp, email: string): Promise<{ login: string; code: string }> {
  const { body } = await app.anonymous('POST', '/api/v3/auth/login/mail', { email })
  return { login: body.data.login, code: await readSignInCode(app, email) }
}

/** The code of the newest mail to sign in. */
export async function readSignInCode(app: TestApp, email: string): Promise<string> {
  const [mail] = await readMails(app, email)
  return /code is (\d{8})\./.exec(mail?.text ?? '')?.[1] ?? ''
}
