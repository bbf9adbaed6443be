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
