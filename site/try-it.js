/** Whether a service serves this page; its content policy allows calls to itself only. */
const isServed = new URL(document.currentScript.src).pathname === '/docs/site/try-it.js'

/**
 * `<signalbox-try-it data-call="...">`: a form that sends the call of a page to a service of the reader. The token lives in
 * the field only. The service has to name the origin of this page in `CORS_ALLOWED_ORIGINS`, unless it serves the page.
 */
class TryIt extends HTMLElement {
  connectedCallback() {
    const call = JSON.parse(this.dataset.call ?? '{}')
    const form = document.createElement('form')
    form.className = 'try-it not-content'
    const origin = field(form, 'Service', 'origin', isServed ? location.origin : 'http://localhost:3000')
    const token = call.hasToken ? field(form, 'Token', 'token', '', 'password') : undefined
    const parameters = call.parameters.map(({ name, place }) => ({ name, place, input: field(form, name, name, '') }))
    const body = call.body === undefined ? undefined : area(form, 'Body', JSON.stringify(call.body, null, 2))
    const button = form.appendChild(document.createElement('button'))
    button.textContent = `Send ${call.method}`
    const answer = form.appendChild(document.createElement('div'))
    answer.setAttribute('role', 'status')
    form.addEventListener('submit', async (event) => {
      event.preventDefault()
      button.disabled = true
      answer.replaceChildren(await send({ call, origin, token, parameters, body }))
      button.disabled = false
    })
    this.replaceChildren(form)
  }
}

function field(form, label, name, value, type = 'text') {
  const input = document.createElement('input')
  Object.assign(input, { name, value, type, autocomplete: 'off', spellcheck: false })
  return labelled(form, label, input)
}

function area(form, label, value) {
  const input = document.createElement('textarea')
  Object.assign(input, { value, rows: Math.min(value.split('\n').length, 16), spellcheck: false })
  return labelled(form, label, input)
}

function labelled(form, text, input) {
  const label = form.appendChild(document.createElement('label'))
  label.append(text, input)
  return input
}

/** Sends the request and returns what to show: the status and the body, or why there was no answer. */
async function send({ call, origin, token, parameters, body }) {
  const filled = parameters.reduce(
    (path, { name, place, input }) =>
      place === 'path' ? path.replace(`{${name}}`, encodeURIComponent(input.value)) : path,
    call.path,
  )
  const query = new URLSearchParams(
    parameters
      .filter(({ place, input }) => place === 'query' && input.value !== '')
      .map(({ name, input }) => [name, input.value]),
  )
  const headers = {
    ...(token?.value ? { Authorization: `Bearer ${token.value}` } : {}),
    ...(body ? { 'Content-Type': 'application/json' } : {}),
  }
  const shown = document.createElement('pre')
  shown.tabIndex = 0
  try {
    const address = new URL(`${filled}${query.size > 0 ? `?${query}` : ''}`, origin.value)
    const response = await fetch(address, { method: call.method, headers, ...(body ? { body: body.value } : {}) })
    shown.textContent = `${response.status} ${response.statusText}\n\n${pretty(await response.text())}`
  } catch (error) {
    shown.textContent = `No answer: ${error.message}. Start the service, and name ${location.origin} in CORS_ALLOWED_ORIGINS.`
  }
  return shown
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

customElements.define('signalbox-try-it', TryIt)
