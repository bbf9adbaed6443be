// Adds a button to each password field that shows what was typed. Runs in the browser.
for (const place of document.querySelectorAll('.with-button')) {
  const input = place.querySelector('input')
  const button = document.createElement('button')
  button.type = 'button'
  button.setAttribute('aria-controls', input.id)
  const show = (isShown) => {
    input.type = isShown ? 'text' : 'password'
    button.textContent = isShown ? place.dataset.hide : place.dataset.show
    button.setAttribute('aria-label', isShown ? place.dataset.hideLabel : place.dataset.showLabel)
  }
  show(false)
  button.addEventListener('click', () => show(input.type === 'password'))
  // A browser keeps what stands in text fields for later forms.
  input.form.addEventListener('submit', () => show(false))
  place.append(button)
}
