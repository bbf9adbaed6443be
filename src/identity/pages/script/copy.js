// Shows the buttons that copy a list, one item a line, where the browser can copy. Runs in the browser.
for (const button of navigator.clipboard ? document.querySelectorAll('[data-copy]') : []) {
  button.hidden = false
  button.addEventListener('click', async () => {
    const items = [...document.getElementById(button.dataset.copy).children].map((item) => item.textContent.trim())
    await navigator.clipboard.writeText(`${items.join('\n')}\n`)
    button.textContent = button.dataset.copied
    button.nextElementSibling.textContent = button.dataset.copied
  })
}
