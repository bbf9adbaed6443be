// The bridge page: takes code or tokens out of the address bar and its history, and continues at callback-redirect.
const bridge = document.getElementById('bridge')
const query = new URLSearchParams(location.search)
const fragment = new URLSearchParams(location.hash.slice(1))
history.replaceState(null, '', location.pathname)

const parameters = new URLSearchParams()
for (const name of ['state', 'code', 'iss', 'error', 'access_token', 'refresh_token']) {
  const value = query.get(name) ?? fragment.get(name)
  if (value !== null) parameters.set(name, value)
}

/** Shows the message for a code of a problem; the general one for any other. */
function showFailure(code) {
  const messages = [...document.querySelectorAll('#messages [data-code]')]
  const message = messages.find(({ dataset }) => dataset.code === code) ?? messages[0]
  const heading = document.getElementById('heading')
  heading.textContent = message.dataset.title
  document.getElementById('explanation').textContent = message.textContent
  document.getElementById('continue')?.remove()
  document.getElementById('back').hidden = false
  heading.focus()
}

async function proceed() {
  const url = `${bridge.dataset.next}?${parameters}`
  // An app is opened by the browser itself, which follows the redirect to its scheme.
  if (bridge.dataset.mode === 'open') return location.replace(url)
  const answer = await fetch(url, { headers: { accept: 'application/json' }, credentials: 'same-origin' })
  const body = await answer.json()
  if (!answer.ok) return showFailure(body.code)
  location.replace(body.data.redirect_url)
}

proceed().catch(() => showFailure())
