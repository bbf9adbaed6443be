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

function showFailure() {
  document.getElementById('progress').hidden = true
  document.getElementById('failure').hidden = false
  document.getElementById('failure').querySelector('h2').focus()
}

async function proceed() {
  const url = `${bridge.dataset.next}?${parameters}`
  // An app is opened by the browser itself, which follows the redirect to its scheme.
  if (bridge.dataset.mode === 'open') return location.replace(url)
  const answer = await fetch(url, { headers: { accept: 'application/json' }, credentials: 'same-origin' })
  if (!answer.ok) return showFailure()
  const { data } = await answer.json()
  location.replace(data.redirect_url)
}

proceed().catch(showFailure)
