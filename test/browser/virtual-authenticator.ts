import type { CDPSession, Page } from 'playwright-core'

/** An authenticator of the browser itself, as the built-in one of a device (WebAuthn section 11). */
export interface VirtualAuthenticator {
  /** Whether it verifies the user from now on. */
  setVerified(isVerified: boolean): Promise<void>
  /** Removes its passkeys: a device that was lost. */
  clear(): Promise<void>
}

/**
 * Adds an authenticator to a page; it answers every question at once, as a user would who always agrees. With `isOffered`
 * it answers the offer in the field of the address too, as soon as the page is there.
 */
export async function addAuthenticator(page: Page, { isOffered = false } = {}): Promise<VirtualAuthenticator> {
  if (!isOffered) await page.addInitScript('PublicKeyCredential.isConditionalMediationAvailable = async () => false')
  const session: CDPSession = await page.context().newCDPSession(page)
  await session.send('WebAuthn.enable', { enableUI: false })
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return {
    setVerified: async (isUserVerified) => {
      await session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified })
    },
    clear: async () => {
      await session.send('WebAuthn.clearCredentials', { authenticatorId })
    },
  }
}
