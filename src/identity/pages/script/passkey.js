// Shows the forms of passkeys where the browser knows them, and fills in what it answers. Runs in the browser.
const isKnown = typeof window.PublicKeyCredential?.parseRequestOptionsFromJSON === 'function'

/** The offer in the field of the address, which ends when a form asks. */
let offered

async function readOptions(form) {
  if (form.dataset.options) return JSON.parse(form.dataset.options)
  const answer = await fetch('/api/v3/auth/login/passkey/options', { method: 'POST', credentials: 'omit' })
  if (!answer.ok) throw new Error('no options')
  return (await answer.json()).data.options
}

async function ask(form, more = {}) {
  const options = await readOptions(form)
  const credential =
    form.dataset.passkey === 'create'
      ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
      : await navigator.credentials.get({
          publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options),
          ...more,
        })
  form.elements.credential.value = JSON.stringify(credential)
  form.submit()
}

function describe(form, error) {
  if (error.name === 'InvalidStateError') return form.dataset.known
  if (error.name === 'NotAllowedError') return form.dataset.cancelled
  return form.dataset.blocked
}

async function answer(form) {
  const message = form.querySelector('[role="alert"]')
  message.hidden = true
  offered?.abort()
  try {
    await ask(form)
  } catch (error) {
    message.textContent = describe(form, error)
    message.hidden = false
  }
}

async function offer(form) {
  if (!(await PublicKeyCredential.isConditionalMediationAvailable?.())) return
  offered = new AbortController()
  try {
    await ask(form, { mediation: 'conditional', signal: offered.signal })
  } catch {
    // Nobody chose a passkey; the form asks on demand.
  }
}

for (const form of isKnown ? document.querySelectorAll('form[data-passkey]') : []) {
  form.hidden = false
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    answer(form)
  })
  if (form.dataset.passkey === 'sign-in') offer(form)
}
